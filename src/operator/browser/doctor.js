// What `tain doctor` finds when a worker runs it.
import { button, inWords, run } from "./commands.js";
import { h } from "./dom.js";
import { Table } from "./table.js";
import { badge, counted } from "./words.js";

/** @typedef {{ part: string, level: "ok" | "warning" | "problem", says: string, todo: string | null }} Finding */

const TONES = /** @type {const} */ ({ problem: "bad", warning: "warn", ok: "good" });
const LEVELS = /** @type {const} */ (["problem", "warning", "ok"]);

export function create() {
  const outcome = h("div", { class: "outcome", role: "status" });
  /** @type {Table<any>} */
  const table = new Table({
    caption: "What was found, the worst first",
    keyOf: (/** @type {Finding} */ { part, says }) => `${part} ${says}`,
    empty: "Nothing was found.",
    columns: [
      { title: "Part", cell: ({ part }) => h("span", { class: "name" }, part), sort: ({ part }) => part },
      {
        title: "State",
        cell: (/** @type {Finding} */ { level }) => badge(TONES[level], level === "ok" ? "well" : level),
        sort: ({ level }) => LEVELS.indexOf(level),
      },
      { title: "What it says", isWide: true, cell: ({ says }) => inWords(says) },
      { title: "What to do", isWide: true, cell: ({ todo }) => todo && inWords(todo) },
    ],
  });
  table.show([], "Nothing has been examined yet.");
  const examine = async (/** @type {EventTarget | null} */ pressed) => {
    const told = await run(
      { command: "doctor" },
      { button: pressed, outcome, begins: "Examining everything …", ends: summary },
    );
    if (told)
      table.show(
        told.document.findings.toSorted(
          (/** @type {Finding} */ one, /** @type {Finding} */ other) =>
            LEVELS.indexOf(one.level) - LEVELS.indexOf(other.level),
        ),
      );
  };
  return {
    element: h(
      "div",
      {},
      h("h1", { tabindex: "-1" }, "Doctor"),
      h(
        "p",
        { class: "muted" },
        "A worker examines the stores, upstream with each credential, the hooks, the clocks and the settings, as it has them. It changes nothing, and costs some requests.",
      ),
      h(
        "div",
        { class: "bar" },
        h(
          "div",
          { class: "end" },
          button("Examine everything", (event) => examine(event.currentTarget), { kind: "primary" }),
          outcome,
        ),
      ),
      table.element,
    ),
    asked: () => null,
    show: () => {},
  };
}

/** @param {import("./commands.js").Told} told */
function summary({ document: { problems, warnings } }) {
  if (problems + warnings === 0) return "All is well.";
  return `${counted(problems, "problem")}, ${counted(warnings, "warning")}`;
}
