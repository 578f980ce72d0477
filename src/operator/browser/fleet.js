// The repositories: how fresh each is, what is wrong, and what can be done.
import { button, inWords, menu, run } from "./commands.js";
import { ask, fill, h } from "./dom.js";
import { choice, searchField, Table } from "./table.js";
import { agoOf, badge, counted, grouped, inOf, moment, now } from "./words.js";

/** A repository that upstream confirmed longer ago is late. */
const LATE_MS = 15 * 60_000;

/** @typedef {{ owner: string, name: string, state: "live" | "backfilling" | "paused" | "gone", progress: any, confirmedAt: string | null, problem: string | null }} Repository */

const COMPARING = "Comparing with upstream …";

/** @param {Repository} repository */
function nameOf({ owner, name }) {
  return `${owner}/${name}`;
}

export function create() {
  const wanted = { text: "", state: "" };
  /** @type {Repository[]} */
  let all = [];
  let isTold = false;
  const table = new Table(TABLE);
  const filter = (/** @type {Partial<typeof wanted>} */ to) => {
    if (Object.keys(to).length > 0) table.release();
    Object.assign(wanted, to);
    const none = all.length === 0 ? "Nothing is mirrored yet. Name a repository above to begin." : NONE;
    if (isTold)
      table.show(
        all.filter((row) => isWanted(row, wanted)),
        none,
      );
  };
  const copies = copiesUnderWay();
  const figures = h("dl", { class: "figures" });
  const problems = h("section", { class: "problems", "aria-label": "Problems of no single repository", hidden: true });
  return {
    element: h(
      "div",
      {},
      h("h1", { tabindex: "-1" }, "Repositories"),
      figures,
      problems,
      h("div", { class: "bar" }, ...filters(filter), ...addForm()),
      copies,
      table.element,
    ),
    asked: () => /** @type {const} */ (["fleet", {}]),
    /** @param {any} data */
    show(data) {
      all = data.repositories;
      isTold = true;
      copies.hidden = all.every((each) => each.state !== "backfilling");
      fill(figures, ...summary(data));
      problems.hidden = data.problems.length === 0;
      fill(problems, ...data.problems.map((/** @type {string} */ text) => h("p", { class: "trouble" }, inWords(text))));
      filter({});
    },
  };
}

const NONE = "No repository is like that.";

/** @type {import("./table.js").Shape<any>} */
const TABLE = {
  caption: "The mirrored repositories, how each stands, and when upstream last confirmed what is held",
  keyOf: nameOf,
  empty: NONE,
  columns: [
    {
      title: "Repository",
      isWide: true,
      cell: (row) => h("span", { class: "name" }, nameOf(row)),
      sort: (row) => nameOf(row).toLowerCase(),
    },
    { title: "State", cell: stateOf, sort: (row) => wordOf(row) },
    { title: "Copied", isFigure: true, cell: copied, sort: (row) => row.progress?.resources ?? 0 },
    {
      title: "Confirmed",
      cell: ({ confirmedAt }) => moment(confirmedAt),
      sort: ({ confirmedAt }) => (confirmedAt ? -Date.parse(confirmedAt) : 0),
    },
    {
      title: "Problem",
      isWide: true,
      cell: ({ problem }) => problem && h("span", { class: "trouble" }, inWords(problem)),
      sort: ({ problem }) => problem ?? "\uffff",
    },
    { title: "What can be done", isActions: true, cell: actions },
  ],
};

/** @param {Repository} row @param {{ text: string, state: string }} wanted */
function isWanted(row, { text, state }) {
  const isNamed = [nameOf(row), row.problem ?? ""].some((each) => each.toLowerCase().includes(text));
  return isNamed && (state === "" || (state === "problem" ? row.problem !== null : wordOf(row) === state));
}

/** @param {(to: { text?: string, state?: string }) => void} change */
function filters(change) {
  return [
    searchField({
      id: "fleet-search",
      label: "Search",
      placeholder: "owner/name, or a problem",
      change: (value) => change({ text: value.toLowerCase() }),
    }),
    choice({
      id: "fleet-state",
      label: "State",
      options: [
        ["", "All"],
        ["problem", "With a problem"],
        ["live", "Live"],
        ["copying", "Copying"],
        ["waiting", "Waiting"],
        ["paused", "Paused"],
        ["gone", "Gone"],
      ],
      change: (state) => change({ state }),
    }),
  ];
}

function copiesUnderWay() {
  const outcome = h("div", { class: "outcome", role: "status" });
  const tryAll = button("Try all copies now", (event) =>
    run({ command: "backfill", flags: ["no-wait"] }, { button: event.currentTarget, outcome }),
  );
  return h("div", { class: "end", hidden: true }, tryAll, outcome);
}

/** @param {Repository} row @param {HTMLElement} outcome */
function actions(row, outcome) {
  const name = nameOf(row);
  /**
   * @param {string} text
   * @param {string} command
   * @param {string[]} flags
   * @param {string} [begins]
   */
  const doing = (text, command, flags, begins) =>
    button(text, (event) =>
      run(
        { command, words: [name], flags },
        { button: event.currentTarget, outcome, ...(begins === undefined ? {} : { begins }) },
      ),
    );
  /**
   * @param {string} text
   * @param {string[]} flags
   * @param {{ title: string, text: string, yes: string }} question
   */
  const removing = (text, flags, question) =>
    button(
      text,
      async (event) => {
        if (await ask(question))
          await run({ command: "remove", words: [name], flags }, { button: event.target, outcome });
      },
      { kind: "danger" },
    );
  return menu(
    name,
    doing("Compare", "audit", [], COMPARING),
    doing("Compare and repair", "audit", ["repair"], COMPARING),
    row.state === "live"
      ? doing("Copy again", "backfill", ["again", "no-wait"])
      : doing("Try the copy now", "backfill", ["no-wait"]),
    removing("Stop mirroring", [], {
      title: `Stop mirroring ${name}?`,
      text: "It is served no more. What was copied stays in the database, and adding it again brings it back.",
      yes: "Stop mirroring",
    }),
    removing("Remove and delete the copy", ["purge"], {
      title: `Delete the copy of ${name}?`,
      text: "It is served no more, and everything that was copied of it is deleted. Upstream keeps its own.",
      yes: "Delete the copy",
    }),
  );
}

function addForm() {
  const field = /** @type {HTMLInputElement} */ (
    h("input", {
      id: "add",
      required: true,
      placeholder: "owner/name or owner/*",
      autocomplete: "off",
      spellcheck: "false",
    })
  );
  const parts = /** @type {HTMLInputElement} */ (
    h("input", {
      id: "add-parts",
      placeholder: "checks,commits",
      title: "Beside issues and pull requests: parts as in MIRROR, comma separated, or none to take them back",
      autocomplete: "off",
      spellcheck: "false",
    })
  );
  const outcome = h("div", { class: "outcome", role: "status" });
  const submit = h("button", { class: "primary" }, "Mirror it");
  const form = h(
    "form",
    {
      class: "add",
      submit: (event) => {
        event.preventDefault();
        const mirror = parts.value.trim();
        void run(
          { command: "add", words: [field.value.trim()], values: mirror === "" ? {} : { mirror } },
          { button: submit, outcome, begins: "Looking it up at upstream …", ends: added },
        );
      },
    },
    h("div", { class: "field" }, h("label", { for: "add" }, "Mirror another"), field),
    h("div", { class: "field" }, h("label", { for: "add-parts" }, "With"), parts),
    submit,
  );
  return [form, outcome];
}

/** @param {import("./commands.js").Told} told */
function added({ document }) {
  return h(
    "span",
    {},
    ...document.added.flatMap((/** @type {any} */ one) => [
      `${one.repository ?? one.pattern}: ${one.repository === null ? "not found yet" : one.state === "live" ? "is live" : "its copy begins"}`,
      one.webhook === "registered"
        ? ", its webhook is registered"
        : one.webhook === "refused"
          ? ", its webhook was refused"
          : "",
      one.problem ? ". " : ".",
      one.problem && inWords(one.problem),
      " ",
    ]),
  );
}

/** @param {Repository} row */
function wordOf({ state, progress, problem }) {
  if (state === "backfilling") return progress === null && problem !== null ? "waiting" : "copying";
  return state;
}

/** @param {Repository} row */
function stateOf(row) {
  const word = wordOf(row);
  const isLate = row.state === "live" && row.confirmedAt !== null && now() - Date.parse(row.confirmedAt) > LATE_MS;
  if (isLate) return badge("warn", "live, late");
  switch (word) {
    case "live":
      return row.problem === null ? badge("good", word) : badge("warn", word);
    case "copying":
      return badge("busy", word);
    case "gone":
      return badge("off", word);
    default:
      return badge("warn", word);
  }
}

/** @param {Repository} row */
function copied({ state, progress }) {
  if (progress === null) return h("span", { class: "muted" }, "nothing");
  const resources = grouped(progress.resources);
  if (state !== "backfilling") return resources;
  const { percent, phase, pages } = progress;
  if (percent === null) return `${resources} on ${counted(pages, "page")}`;
  return h(
    "span",
    { class: "progress" },
    h("progress", { max: 100, value: percent, "aria-label": `${phase ?? "the copy"}: ${percent} %` }),
    ` ${percent} %`,
    h("span", { class: "muted" }, `${resources}${phase === null ? "" : `, ${phase.replaceAll("_", " ")}`}`),
  );
}

/** @param {any} data */
function summary({ repositories, deliveries, queues, quota, forecast }) {
  const live = repositories.filter((/** @type {Repository} */ { state }) => state === "live");
  const troubled = repositories.filter((/** @type {Repository} */ { problem }) => problem !== null).length;
  const oldest = Math.min(
    ...live.flatMap((/** @type {Repository} */ { confirmedAt }) =>
      confirmedAt === null ? [] : [Date.parse(confirmedAt)],
    ),
  );
  const core = quota.filter((/** @type {any} */ one) => one.bucket === "core" && one.remaining !== null);
  const sum = (/** @type {"remaining" | "limit"} */ of) =>
    core.reduce((/** @type {number} */ total, /** @type {any} */ one) => total + one[of], 0);
  const waiting =
    queues === null
      ? null
      : Object.values(queues).reduce((total, { waiting: some, active }) => total + some + active, 0);
  return [
    figure(
      "Live",
      `${grouped(live.length)} of ${grouped(repositories.length)}`,
      troubled > 0 ? `${counted(troubled, "problem")} below` : "no problem",
      troubled > 0,
    ),
    figure(
      "Confirmed",
      Number.isFinite(oldest) ? agoOf(oldest) : "never",
      "the longest ago of all live",
      Number.isFinite(oldest) && now() - oldest > LATE_MS,
    ),
    figure(
      "Failed deliveries",
      grouped(deliveries.failed),
      deliveries.overdue > 0 ? `${grouped(deliveries.overdue)} wait for more than a minute` : "none is overdue",
      deliveries.failed + deliveries.overdue > 0,
      "#deliveries",
    ),
    figure(
      "Upstream's quota",
      core.length === 0 ? "unknown" : grouped(sum("remaining")),
      queues === null
        ? "Redis does not answer"
        : core.length === 0
          ? "no answer has told it yet"
          : `of ${grouped(sum("limit"))} an hour are left`,
      false,
      "#quota",
    ),
    forecast
      ? figure(
          "First copies",
          inOf(forecast.finishesAt),
          forecast.waitsForQuota ? "done, waits for quota included" : "all are done, at this pace",
          false,
        )
      : figure(
          "Work",
          waiting === null ? "unknown" : grouped(waiting),
          waiting === null ? "Redis does not answer" : "jobs wait or run",
          waiting === null,
          "#queues",
        ),
  ];
}

/**
 * @param {string} title
 * @param {string} value
 * @param {string} about
 * @param {boolean} isBad
 * @param {string} [href]
 */
function figure(title, value, about, isBad, href) {
  return h(
    "div",
    { class: isBad ? "bad" : null },
    h("dt", {}, href ? h("a", { href }, title) : title),
    h("dd", {}, h("strong", {}, value), h("span", { class: "muted" }, about)),
  );
}
