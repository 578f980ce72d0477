// Where events are sent, and what came of it.
import { load } from "./api.js";
import { button, inWords, menu, run } from "./commands.js";
import { ask, fill, h } from "./dom.js";
import { choice, Table } from "./table.js";
import { badge, grouped, moment, now, spanOf } from "./words.js";

export function create(/** @type {{ refresh: () => void }} */ page) {
  /** @type {Table<any>} */
  const table = new Table({
    caption: "The addresses that events are sent to, and what came of the last request",
    keyOf: (/** @type {any} */ { id }) => String(id),
    empty: "There are no targets. One is made below, or registered by a caller with the hooks API.",
    columns: [
      ...COLUMNS,
      { title: "What can be done", isActions: true, cell: (row, outcome) => actions(row, outcome, page) },
    ],
  });

  return {
    element: h(
      "div",
      {},
      h("h1", { tabindex: "-1" }, "Targets"),
      h("p", { class: "muted" }, "Tain sends each event on, once the mirror shows what it tells."),
      table.element,
      addForm(page),
    ),
    asked: () => /** @type {const} */ (["targets", {}]),
    /** @param {any} data */
    show: ({ targets }) => table.show(targets),
  };
}

/** @type {import("./table.js").Column<any>[]} */
const COLUMNS = [
  {
    title: "Sends to",
    isWide: true,
    cell: ({ id, url, format }) =>
      h(
        "span",
        { class: "stack" },
        h("span", { class: "name url" }, url),
        h("span", { class: "muted" }, `target ${id}${format === null ? "" : `, as ${format}`}`),
      ),
    sort: ({ url }) => url,
  },
  { title: "For", cell: ({ for: scope }) => scope, sort: ({ for: scope }) => scope },
  { title: "Events", cell: wanted },
  { title: "State", cell: stateOf, sort: ({ state }) => state },
  {
    title: "Oldest waits",
    isFigure: true,
    cell: ({ waiting }) => (waiting?.oldestAt ? spanOf(now() - Date.parse(waiting.oldestAt)) : "–"),
    sort: ({ waiting }) => (waiting?.oldestAt ? now() - Date.parse(waiting.oldestAt) : 0),
  },
  {
    title: "What is wrong",
    isWide: true,
    cell: ({ problem }) => problem && h("span", { class: "trouble" }, inWords(problem)),
  },
];

/** @param {any} target */
function wanted({ events, actions: only, labels }) {
  const told = events.includes("*") ? "all" : events.join(", ");
  return `${told}${only === null ? "" : `; only ${only.join(", ")}`}${labels === null ? "" : `; with ${labels.join(", ")}`}`;
}

/** @param {any} row @param {HTMLElement} outcome @param {{ refresh: () => void }} page */
function actions(row, outcome, page) {
  const words = [String(row.id)];
  return h(
    "span",
    { class: "buttons" },
    button("Requests", () => showSent(row), { label: `Requests of target ${row.id}` }),
    menu(
      `target ${row.id}`,
      button("Send to it again", async (event) => {
        await run({ command: "targets enable", words }, { button: event.target, outcome });
        page.refresh();
      }),
      button(
        "Remove",
        async (event) => {
          if (
            !(await ask({
              title: `Remove target ${row.id}?`,
              text: `Nothing is sent to ${row.url} any more, and the record of what was sent is deleted.`,
              yes: "Remove it",
            }))
          )
            return;
          await run({ command: "targets remove", words }, { button: event.target, outcome });
          page.refresh();
        },
        { kind: "danger" },
      ),
    ),
  );
}

/** @param {any} target */
function stateOf({ state, problem, lastStatus }) {
  if (state === "disabled") return badge("bad", "disabled");
  if (state === "off") return badge("off", "off");
  if (problem !== null) return badge("warn", "fails");
  return badge("good", lastStatus === null ? "on, unused" : "on");
}

/** @type {[value: string, text: string][]} */
const FORMATS = [
  ["", "upstream sent it"],
  ["slack", "a message in Slack"],
  ["teams", "a message in Teams"],
  ["discord", "a message in Discord"],
  ["cloudevents", "CloudEvents"],
];

/** @param {{ refresh: () => void }} page */
function addForm(page) {
  const outcome = h("div", { class: "outcome", role: "status" });
  const input = (/** @type {string} */ id, /** @type {Record<string, any>} */ props) =>
    /** @type {HTMLInputElement} */ (h("input", { id, autocomplete: "off", spellcheck: "false", ...props }));
  const url = input("target-url", { type: "url", required: true, placeholder: "https://ci.example/hook" });
  const scope = input("target-for", { placeholder: "everything" });
  const events = input("target-events", { placeholder: "all" });
  const onlyActions = input("target-actions", { placeholder: "all" });
  const labels = input("target-labels", { placeholder: "all" });
  let format = "";
  const form = input("target-form", { type: "checkbox" });
  const rewrite = input("target-rewrite", { type: "checkbox" });
  const submit = h("button", { class: "primary" }, "Add the target");
  const field = (/** @type {string} */ label, /** @type {HTMLInputElement} */ of, /** @type {string} */ hint) =>
    h("div", { class: "field" }, h("label", { for: of.id }, label), of, h("span", { class: "muted hint" }, hint));
  return h(
    "form",
    {
      class: "card form",
      submit: async (event) => {
        event.preventDefault();
        const given = Object.entries({ for: scope, events, actions: onlyActions, labels, format: { value: format } });
        const values = Object.fromEntries(
          given.flatMap(([name, { value }]) => (value.trim() ? [[name, value.trim()]] : [])),
        );
        const flags = [...(form.checked ? ["form"] : []), ...(rewrite.checked ? ["rewrite-urls"] : [])];
        const told = await run(
          { command: "targets add", words: [url.value.trim()], values, flags },
          { button: submit, outcome, ends: added },
        );
        if (told) page.refresh();
      },
    },
    h("h2", {}, "Add a target"),
    h(
      "div",
      { class: "fields" },
      field("Address", url, "Where the requests go"),
      field("For", scope, "owner/name or owner/*"),
      field("Events", events, "issues,pull_request"),
      field("Actions", onlyActions, "opened,closed"),
      field("Labels", labels, "bug,help wanted"),
      choice({
        id: "target-format",
        label: "Told as",
        options: FORMATS,
        change: (value) => {
          format = value;
        },
      }),
    ),
    h("p", { class: "check" }, form, h("label", { for: form.id }, "As a form with the field payload, not as JSON")),
    h(
      "p",
      { class: "check" },
      rewrite,
      h("label", { for: rewrite.id }, "Let addresses of upstream's API in it lead to the mirror (PUBLIC_URL)"),
    ),
    submit,
    outcome,
  );
}

/** @param {import("./commands.js").Told} told */
function added({ document }) {
  const hears = `Target ${document.id} hears of everything that it wants from now on.`;
  if (document.secret === null) return hears;
  return h(
    "span",
    {},
    `${hears} Requests are signed with this secret, which is shown this once: `,
    h("code", { class: "secret" }, document.secret),
  );
}

/** @type {import("./table.js").Column<any>[]} */
const SENT_COLUMNS = [
  {
    title: "Event",
    cell: ({ event, action, guid }) =>
      h(
        "span",
        { class: "stack" },
        h("span", { class: "name" }, action === null ? event : `${event}.${action}`),
        h("code", { class: "muted guid" }, guid),
      ),
  },
  {
    title: "Answer",
    cell: ({ status, statusCode, isAccepted }) =>
      badge(isAccepted ? "good" : "bad", statusCode > 0 ? `${statusCode} ${status}` : status),
  },
  {
    title: "Sent",
    cell: ({ deliveredAt, redelivery }) => h("span", {}, moment(deliveredAt), redelivery && " (again)"),
  },
  { title: "Took", isFigure: true, cell: ({ durationMs }) => `${grouped(durationMs)} ms` },
];

function sendAgain(/** @type {any} */ target, /** @type {any} */ row, /** @type {HTMLElement} */ outcome) {
  return button(
    "Send again",
    (event) =>
      run(
        { command: "targets resend", words: [String(target.id), String(row.id)] },
        { button: event.currentTarget, outcome },
      ),
    { label: `Send ${row.guid} again` },
  );
}

/** @param {any} target */
async function showSent(target) {
  /** @type {Table<any>} */
  const list = new Table({
    caption: `The newest requests of target ${target.id}`,
    keyOf: (/** @type {any} */ { id }) => String(id),
    empty: "Nothing that is kept is like that.",
    columns: [
      ...SENT_COLUMNS,
      { title: "What can be done", isActions: true, cell: (row, outcome) => sendAgain(target, row, outcome) },
    ],
  });
  const trouble = h("p", { class: "trouble" });
  const failed = /** @type {HTMLInputElement} */ (
    h("input", { id: "sent-failed", type: "checkbox", change: () => void read() })
  );
  const read = async () => {
    try {
      const asked = { target: String(target.id), ...(failed.checked && { failed: "1" }) };
      list.release();
      list.show((await load("sent", asked)).sent);
      fill(trouble, "");
    } catch (error) {
      fill(trouble, error instanceof Error ? error.message : String(error));
    }
  };
  const dialog = /** @type {HTMLDialogElement} */ (
    h(
      "dialog",
      { class: "large", "aria-labelledby": "sent-title", close: () => dialog.remove() },
      h("h2", { id: "sent-title" }, `Requests of target ${target.id}`),
      h("p", { class: "check" }, failed, h("label", { for: failed.id }, "Only those that failed")),
      trouble,
      list.element,
      h("form", { method: "dialog", class: "buttons" }, h("button", {}, "Close")),
    )
  );
  document.body.append(dialog);
  dialog.showModal();
  await read();
}
