// How elements are made. Text is always text: what others wrote never becomes markup.

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>} Props
 */

/**
 * An element. A property that is a function listens, `true` is an attribute without a value, and null or false is none.
 * @param {string} tag
 * @param {Props} [props]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  set(element, props);
  element.append(...present(children));
  return element;
}

/**
 * The same for drawings.
 * @param {string} tag
 * @param {Props} [props]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function s(tag, props = {}, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS("http://www.w3.org/2000/svg", tag));
  set(element, props);
  element.append(...present(children));
  return element;
}

/**
 * @param {Element} element
 * @param {Props} props
 */
function set(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
}

/**
 * @param {readonly Child[]} children
 * @returns {(Node | string)[]}
 */
function present(children) {
  return children.flatMap((child) =>
    child === null || child === undefined || child === false || child === ""
      ? []
      : [child instanceof Node ? child : String(child)],
  );
}

/**
 * Puts other contents into an element.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  element.replaceChildren(...present(children));
}

/**
 * Says something to those who listen, and shows nothing. What is said twice in a row is said once.
 * @param {string} text
 */
export function say(text) {
  const place = document.getElementById("said");
  if (place && place.textContent !== text) place.textContent = text;
}

/**
 * Asks once whether something that cannot be taken back is meant.
 * @param {{ title: string, text: string, yes: string }} question
 * @returns {Promise<boolean>}
 */
export function ask({ title, text, yes }) {
  return new Promise((resolve) => {
    const dialog = /** @type {HTMLDialogElement} */ (
      h(
        "dialog",
        { "aria-labelledby": "asked", close: () => end() },
        h("h2", { id: "asked" }, title),
        h("p", {}, text),
        h(
          "form",
          { method: "dialog", class: "buttons" },
          h("button", { value: "", autofocus: true }, "Cancel"),
          h("button", { value: "yes", class: "danger" }, yes),
        ),
      )
    );
    const end = () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    };
    document.body.append(dialog);
    dialog.showModal();
  });
}
