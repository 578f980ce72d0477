// The mirror, to be looked at: which part is shown, and with whose token.
import { AskError } from "./api.js";
import { keepToken, TokenError, token } from "./browse-asking.js";
import { FIRST, issues, repositories } from "./browse-lists.js";
import { issue } from "./browse-one.js";
import { fill, h, say } from "./dom.js";
import { keepTime } from "./words.js";

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const way = /** @type {HTMLElement} */ (document.getElementById("way"));
const leave = /** @type {HTMLButtonElement} */ (document.getElementById("leave"));

/** Counts what was asked for: an answer that comes after the next question is not shown. */
let turn = 0;

/** What the address says: `#/owner/name/issues/1`, with a search behind `?`. */
function placeOf() {
  const [path = "", search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [owner = "", name = "", kind = "", number = ""] = path.split("/").map(decodeURIComponent);
  const asked = new URLSearchParams(search);
  return { owner, name, kind, number: Number(number), page: Number(asked.get("page")) || 1, query: asked.get("q") };
}

/** @returns {Promise<HTMLElement>} */
async function made() {
  const { owner, name, kind, number, page, query } = placeOf();
  if (owner === "" || name === "") return await repositories({ page });
  if ((kind === "issues" || kind === "pull") && number > 0) return await issue({ owner, name, kind, number });
  return await issues({ owner, name, page, query: query ?? FIRST });
}

async function show() {
  const mine = ++turn;
  leave.hidden = token() === null;
  main.setAttribute("aria-busy", "true");
  /** @type {HTMLElement} */
  let element;
  try {
    element = await made();
  } catch (error) {
    if (!(error instanceof AskError)) throw error;
    element = error instanceof TokenError ? tokenForm(error.message) : problem(error.message);
  }
  if (mine !== turn) return;
  fill(main, element);
  main.removeAttribute("aria-busy");
  const title = element.querySelector("h1");
  document.title = `${title?.textContent ?? "Browse"} · Tain`;
  way.hidden = placeOf().owner === "";
  title?.focus();
  say(title?.textContent ?? "");
}

/** @param {string} says */
function problem(says) {
  return h(
    "div",
    {},
    h("h1", { tabindex: "-1" }, "This cannot be shown"),
    h("p", { class: "problems", role: "alert" }, says),
    h("p", {}, h("button", { click: () => void show() }, "Try again")),
  );
}

/** @param {string} says */
function tokenForm(says) {
  const field = /** @type {HTMLInputElement} */ (
    h("input", { id: "token", type: "password", required: true, autocomplete: "off", spellcheck: false })
  );
  const go = (/** @type {Event} */ event) => {
    event.preventDefault();
    keepToken(field.value.trim());
    void show();
  };
  const wasShown = token() !== null;
  return h(
    "form",
    { class: "card sign-in", submit: go },
    h("h1", { tabindex: "-1" }, "Look at the mirror"),
    wasShown ? h("p", { class: "problem", role: "alert" }, `The API says: ${says}`) : null,
    h("label", { for: "token" }, "A token that the API takes"),
    field,
    h(
      "p",
      { class: "hint muted" },
      "One of Tain's (",
      h("code", {}, "tain token create"),
      ", or the page's Tokens), or the service's. You see what it may see. This tab keeps it, and nothing else does.",
    ),
    h("button", { class: "primary" }, "Look"),
  );
}

leave.addEventListener("click", () => {
  keepToken(null);
  void show();
});
window.addEventListener("hashchange", () => void show());
setInterval(keepTime, 1_000);
void show();
