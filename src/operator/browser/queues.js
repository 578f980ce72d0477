// Which processes run, what waits for them, and what has failed.
import { button, run } from "./commands.js";
import { h } from "./dom.js";
import { Table } from "./table.js";
import { badge, grouped, moment } from "./words.js";

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

/** @type {Record<string, string>} */
const DOES = {
  web: "Takes webhooks, answers callers, and serves this page",
  worker: "Copies, applies and sends",
  scheduler: "Starts catch-ups, sweeps and audits",
};

/** @typedef {{ role: string, beats: { name: string, at: string }[], silent: { name: string, since: string }[], lastBeatAt: string | null }} RoleLife */
/** @typedef {{ role: string, name: string | null, state: "runs" | "silent" | "none", at: string | null }} Process */

/** A row for each process, and one for a role that none has. Pure. @param {RoleLife[]} lives @returns {Process[]} */
function processesIn(lives) {
  return lives.flatMap(({ role, beats, silent, lastBeatAt }) => {
    /** @type {Process[]} */
    const known = [
      ...beats.map(({ name, at }) => ({ role, name, state: /** @type {const} */ ("runs"), at })),
      ...silent.map(({ name, since }) => ({ role, name, state: /** @type {const} */ ("silent"), at: since })),
    ];
    return beats.length > 0 ? known : [...known, { role, name: null, state: "none", at: lastBeatAt }];
  });
}

/** @type {import("./table.js").Column<Process>[]} */
const PROCESS_COLUMNS = [
  {
    title: "Process",
    cell: ({ role, name }) =>
      h("span", { class: "stack" }, h("span", { class: "name" }, role), name && h("code", { class: "muted" }, name)),
    sort: ({ role, name }) => `${role} ${name ?? ""}`,
  },
  { title: "What it does", isWide: true, cell: ({ role }) => DOES[role] ?? "" },
  {
    title: "State",
    cell: ({ state }) =>
      state === "runs"
        ? badge("good", "runs")
        : badge("bad", state === "none" ? "none runs" : "silent: it hangs, or was killed"),
    sort: ({ state }) => state,
  },
  { title: "Last sign", cell: ({ at }) => moment(at), sort: ({ at }) => (at === null ? 0 : -Date.parse(at)) },
];

export function create(/** @type {{ refresh: () => void }} */ page) {
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
  /** @type {Table<Process>} */
  const processes = new Table({
    caption: "The processes, by machine and process id. Each gives a sign every five seconds",
    keyOf: ({ role, name }) => `${role} ${name}`,
    empty: "Redis cannot be reached, so it is not known which processes run.",
    columns: PROCESS_COLUMNS,
  });
  const failed = failedJobs(page);
  return {
    element: h(
      "div",
      {},
      h("h1", { tabindex: "-1" }, "Processes"),
      processes.element,
      h("h2", {}, "Queues"),
      table.element,
      failed.element,
    ),
    asked: () => /** @type {const} */ (["queues", {}]),
    /** @param {any} data */
    show(data) {
      processes.show(processesIn(data.processes ?? []));
      table.show(Object.entries(data.queues ?? {}).map(([name, counts]) => ({ name, ...counts })));
      failed.show(data.failed);
    },
  };
}

/** @param {{ refresh: () => void }} page */
function failedJobs(page) {
  /** @type {Table<any>} */
  const table = new Table({
    caption: "The newest jobs that failed for good",
    keyOf: (/** @type {any} */ { id }) => id,
    empty: "No job has failed.",
    columns: [
      ...COLUMNS,
      { title: "What can be done", isActions: true, cell: (row, outcome) => actions(row, outcome, page) },
    ],
  });
  const outcome = h("div", { class: "outcome", role: "status" });
  const all = button("Try all again", async (event) => {
    await run({ command: "jobs retry", flags: ["all"] }, { button: event.currentTarget, outcome });
    page.refresh();
  });
  const bar = h("div", { class: "end", hidden: true }, all, outcome);
  return {
    element: h(
      "section",
      {},
      h("h2", {}, "Jobs that failed"),
      h(
        "p",
        { class: "muted" },
        "Most go by themselves within a minute once their work is done: the scheduler, a sweep or an audit finds it again.",
      ),
      table.element,
      bar,
    ),
    /** @param {any[] | null} jobs */
    show(jobs) {
      table.show(
        jobs ?? [],
        jobs === null ? "Redis cannot be reached, so it is not known whether jobs failed." : undefined,
      );
      bar.hidden = (jobs ?? []).length === 0;
    },
  };
}

/** @type {import("./table.js").Column<any>[]} */
const COLUMNS = [
  { title: "Job", cell: ({ id }) => h("code", { class: "name" }, id), sort: ({ id }) => id },
  {
    title: "Of",
    cell: ({ name, about }) => [name, ...Object.entries(about).map(([field, value]) => `${field} ${value}`)].join(", "),
    sort: ({ name }) => name,
  },
  { title: "Failed", cell: ({ failedAt }) => moment(failedAt), sort: ({ failedAt }) => -Date.parse(failedAt) },
  { title: "Attempts", isFigure: true, cell: ({ attempts }) => grouped(attempts), sort: ({ attempts }) => attempts },
  { title: "Reason", isWide: true, cell: ({ reason }) => h("span", { class: "trouble" }, reason) },
];

/** @param {any} row @param {HTMLElement} outcome @param {{ refresh: () => void }} page */
function actions({ id, queue }, outcome, page) {
  const doing = (/** @type {string} */ text, /** @type {string} */ command) =>
    button(
      text,
      async (event) => {
        await run({ command, words: [id] }, { button: event.currentTarget, outcome });
        page.refresh();
      },
      { label: `${text}: ${id}` },
    );
  return h(
    "span",
    { class: "buttons" },
    queue !== "commands" && doing("Try again", "jobs retry"),
    doing("Forget", "jobs clear"),
  );
}
