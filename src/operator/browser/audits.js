// In what the mirror was not equal to upstream.
import { button, run } from "./commands.js";
import { h } from "./dom.js";
import { Table } from "./table.js";
import { badge, counted, grouped, moment } from "./words.js";

export function create() {
  /** @type {Table<any>} */
  const table = new Table({
    caption: "The newest audit of each repository, and the drift that it found",
    keyOf: (/** @type {any} */ { repository }) => repository,
    empty: "No repository has been audited yet. Each is, by itself, once in AUDIT_PERIOD.",
    columns: [
      {
        title: "Repository",
        cell: ({ repository }) => h("span", { class: "name" }, repository),
        sort: ({ repository }) => repository.toLowerCase(),
      },
      { title: "Found", cell: verdictOf, sort: ({ found }) => found },
      {
        title: "Ended",
        cell: ({ finishedAt }) => moment(finishedAt, "under way"),
        sort: ({ finishedAt }) => (finishedAt ? -Date.parse(finishedAt) : 0),
      },
      {
        title: "Compared",
        isFigure: true,
        cell: ({ resources }) => grouped(resources),
        sort: ({ resources }) => resources,
      },
      { title: "In what", isWide: true, cell: driftOf },
      {
        title: "What can be done",
        isActions: true,
        cell: (row, outcome) =>
          button(
            "Compare now",
            (event) =>
              run(
                { command: "audit", words: [row.repository], flags: ["repair"] },
                { button: event.currentTarget, outcome: outcome, begins: "Comparing with upstream …" },
              ),
            { label: `Compare ${row.repository} now` },
          ),
      },
    ],
  });
  return {
    element: h(
      "div",
      {},
      h("h1", { tabindex: "-1" }, "Audits"),
      h(
        "p",
        { class: "muted" },
        "An audit compares a whole repository with upstream, value by value, and repairs what differs.",
      ),
      table.element,
    ),
    asked: () => /** @type {const} */ (["audits", {}]),
    /** @param {any} data */
    show: ({ audits }) => table.show(audits),
  };
}

/** @param {any} audit */
function verdictOf({ found, finishedAt, repaired, notCompared }) {
  const verdict = notCompared.length > 0 ? "equal, as far as shown" : "equal";
  if (found === 0) return finishedAt === null ? badge("busy", "nothing so far") : badge("good", verdict);
  return badge("warn", `${counted(found, "difference")}${repaired ? ", repaired" : ""}`);
}

/** @param {any} audit */
function driftOf({ drift, found, notCompared }) {
  const left = notCompared.map((/** @type {any} */ { part }) => part).join(", ");
  if (drift.length === 0) return left && `not compared: ${left}`;
  const first = drift.slice(0, 3).map(textOf).join("; ");
  if (drift.length <= 3) return first;
  return h(
    "details",
    {},
    h("summary", { "data-focus": "drift" }, `${first} …`),
    h("ul", {}, ...drift.map((/** @type {any} */ one) => h("li", {}, textOf(one)))),
    found > drift.length && h("p", { class: "muted" }, `and ${grouped(found - drift.length)} more`),
  );
}

/** @param {any} drift */
function textOf({ kind, key, drift, fields = [] }) {
  const what = `${kind.replaceAll("_", " ")} ${key}`;
  if (drift === "absent") return `${what} was not in the mirror`;
  if (drift === "gone") return `${what} is no more at upstream`;
  return `${what} differed in ${fields.join(", ")}`;
}
