// What is done by a command of `tain`, and what came of it.
import { AskError, look, post } from "./api.js";
import { fill, h, say } from "./dom.js";

/**
 * @typedef {object} Asked
 * @property {string} command such as `deliveries replay`
 * @property {string[]} [words]
 * @property {string[]} [flags]
 * @property {Record<string, string>} [values]
 */

/**
 * @typedef {object} Told
 * @property {"waiting" | "running" | "done"} state
 * @property {string | null} waitsFor why it does not begin, in words
 * @property {string[]} lines what a person is told
 * @property {any} document what a program is told
 * @property {string | null} error why it could not be done
 * @property {number | null} code 0: all is well
 */

const LOOK_MS = 400;

/**
 * Runs a command, and says beside what caused it how it comes along and how it ended. Null: it could not be done.
 * @param {Asked} asked
 * @param {{ button?: EventTarget | null, outcome: HTMLElement, begins?: string, ends?: (told: Told) => import("./dom.js").Child }} place
 * @returns {Promise<Told | null>}
 */
export async function run(asked, { button = null, outcome, begins = "Asked for …", ends = linesOf }) {
  const pressed = button instanceof HTMLButtonElement ? button : null;
  if (pressed?.getAttribute("aria-disabled") === "true") return null;
  pressed?.setAttribute("aria-disabled", "true");
  outcome.className = "outcome busy";
  fill(outcome, begins);
  try {
    const { id } = await post("/-/operator/commands", asked);
    for (;;) {
      /** @type {Told} */
      const told = await look(`/-/operator/commands/${encodeURIComponent(id)}`);
      if (told.state === "done") return end(told, outcome, ends);
      const progress = told.lines.at(-1);
      const text = told.state === "waiting" ? (told.waitsFor ?? begins) : (progress ?? begins);
      if (outcome.textContent !== text) fill(outcome, text);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  } catch (error) {
    if (!(error instanceof AskError)) throw error;
    outcome.className = "outcome bad";
    fill(outcome, error.message);
    say(error.message);
    return null;
  } finally {
    pressed?.removeAttribute("aria-disabled");
  }
}

/**
 * @param {Told} told
 * @param {HTMLElement} outcome
 * @param {(told: Told) => import("./dom.js").Child} ends
 */
function end(told, outcome, ends) {
  if (told.error !== null) {
    outcome.className = "outcome bad";
    fill(outcome, inWords(told.error));
    return null;
  }
  outcome.className = told.code === 0 ? "outcome good" : "outcome bad";
  fill(outcome, ends(told));
  return told;
}

/** @param {Told} told */
function linesOf({ lines }) {
  return h("span", {}, ...lines.flatMap((line, at) => [at > 0 ? h("br") : null, inWords(line)]));
}

/**
 * A sentence of ours, in which backticks stand around what is typed.
 * @param {string} text
 */
export function inWords(text) {
  return h("span", {}, ...text.split("`").map((part, at) => (at % 2 === 1 ? h("code", {}, part) : part)));
}

/**
 * A button.
 * @param {string} text
 * @param {(event: Event) => unknown} press
 * @param {{ kind?: "danger" | "primary" | "quiet", label?: string }} [how] `label`: what it does to what, for those who do not see where it stands
 */
export function button(text, press, { kind = "quiet", label } = {}) {
  return h(
    "button",
    { type: "button", class: kind, "aria-label": label, "data-focus": text, click: (event) => void press(event) },
    text,
  );
}

/**
 * What can be done to one row, folded away.
 * @param {string} about what it is done to
 * @param {...HTMLElement} buttons
 */
export function menu(about, ...buttons) {
  const list = h("div", { class: "choices" }, ...buttons);
  const summary = h("summary", { "aria-label": `Actions for ${about}`, "data-focus": "menu" }, "Actions");
  const element = h("details", { class: "menu" }, summary, list);
  // Before the button is heard: what it opens gives the focus back to where it was.
  const close = () => {
    element.removeAttribute("open");
    summary.focus();
  };
  list.addEventListener("click", close, { capture: true });
  return element;
}
