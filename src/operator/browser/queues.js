// What waits for the workers.
import { fill, h } from "./dom.js";
import { Table } from "./table.js";
import { grouped } from "./words.js";

/** @type {Record<string, string>} */
const MEANS = {
  inbox: "Deliveries that reach Postgres later, because it was away",
  deliveries: "Deliveries to be applied",
  backfill: "First copies",
  "catch-up": "Reads of what changed",
  audit: "Parts of comparisons with upstream",
  refresh: "Single resources to be read again",
  targets: "Turns of targets that events are sent to",
  maintenance: "What the scheduler asks for",
  commands: "What operators ask for on this page",
};

export function create() {
  /** @type {Table<any>} */
  const table = new Table({
    caption: "The queues and how many jobs each holds",
    keyOf: (/** @type {any} */ { name }) => name,
    empty: "Redis cannot be reached, so nothing is known of the queues.",
    columns: [
      { title: "Queue", cell: ({ name }) => h("span", { class: "name" }, name), sort: ({ name }) => name },
      { title: "What it holds", isWide: true, cell: ({ name }) => MEANS[name] ?? "" },
      ...["waiting", "active", "delayed", "failed"].map((state) => ({
        title: `${state[0]?.toUpperCase()}${state.slice(1)}`,
        isFigure: true,
        cell: (/** @type {any} */ row) =>
          state === "failed" && row[state] > 0
            ? h("span", { class: "trouble" }, grouped(row[state]))
            : grouped(row[state]),
        sort: (/** @type {any} */ row) => row[state],
      })),
    ],
  });
  const note = h("p", { class: "muted" });
  return {
    element: h("div", {}, h("h1", { tabindex: "-1" }, "Queues"), note, table.element),
    asked: () => /** @type {const} */ (["fleet", {}]),
    /** @param {any} data */
    show({ queues }) {
      fill(
        note,
        "A job that failed for good says why in the worker's log. What it stood for is found again by the scheduler, a sweep or an audit.",
      );
      table.show(Object.entries(queues ?? {}).map(([name, counts]) => ({ name, ...counts })));
    },
  };
}
