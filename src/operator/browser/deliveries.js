// The inbox of webhooks: what arrived, what became of it, and once more.
import { button, inWords, run } from "./commands.js";
import { ask, fill, h } from "./dom.js";
import { choice, searchField, Table } from "./table.js";
import { badge, counted, grouped, moment } from "./words.js";

/** Longer payloads are for a program. */
const MOST_SHOWN = 200_000;
export const TONES = /** @type {const} */ ({ pending: "busy", applied: "good", ignored: "off", failed: "bad" });

/** @typedef {{ refresh: () => void }} Page */

export function create(/** @type {Page} */ page) {
  const asked = { status: "", search: "", limit: "50" };
  const change = (/** @type {Partial<typeof asked>} */ to) => {
    Object.assign(asked, { limit: "50" }, to);
    table.release();
    page.refresh();
  };
  const table = tableOf(page);
  const more = button("Look further back", () => change({ limit: "500" }));
  return {
    element: h(
      "div",
      {},
      h("h1", { tabindex: "-1" }, "Deliveries"),
      h("div", { class: "bar" }, ...filters(change), replayFailed(page)),
      table.element,
      more,
    ),
    asked: () => /** @type {const} */ (["deliveries", asked]),
    /** @param {any} data */
    show({ deliveries }) {
      table.show(deliveries);
      more.hidden = deliveries.length < 50 || asked.limit !== "50";
    },
  };
}

/** @param {Page} page @returns {Table<any>} */
function tableOf(page) {
  return new Table({
    caption: "The newest deliveries, and what became of them",
    keyOf: (/** @type {any} */ { id }) => id,
    empty: "No delivery in the inbox is like that.",
    most: 500,
    columns: [
      ...COLUMNS,
      { title: "What can be done", isActions: true, cell: (row, outcome) => actions(row, outcome, page) },
    ],
  });
}

/** @type {import("./table.js").Column<any>[]} */
const COLUMNS = [
  {
    title: "Event",
    cell: ({ id, event, action, guid }) =>
      h(
        "span",
        { class: "stack" },
        h(
          "a",
          { class: "name", href: `#delivery/${id}`, "data-focus": "way", title: "Its whole way" },
          action === null ? event : `${event}.${action}`,
        ),
        h("code", { class: "muted guid", title: "The GUID, upstream's name for it" }, guid),
      ),
    sort: ({ event, action }) => `${event}.${action}`,
  },
  {
    title: "Status",
    cell: ({ status }) => badge(TONES[/** @type {keyof typeof TONES} */ (status)], status),
    sort: ({ status }) => status,
  },
  {
    title: "Received",
    cell: ({ receivedAt }) => moment(receivedAt),
    sort: ({ receivedAt }) => -Date.parse(receivedAt),
  },
  {
    title: "Repository",
    cell: ({ repository, repositoryId }) =>
      repository ?? (repositoryId === null ? h("span", { class: "muted" }, "none") : `id ${repositoryId}`),
    sort: ({ repository }) => repository ?? "",
  },
  {
    title: "Reason",
    isWide: true,
    cell: ({ reason, attempts, status }) =>
      reason &&
      h(
        "span",
        { class: status === "failed" ? "trouble" : null },
        reason,
        attempts > 1 && h("span", { class: "muted" }, ` (${grouped(attempts)} attempts)`),
      ),
    sort: ({ reason }) => reason ?? "\uffff",
  },
];

/** @param {(to: { search?: string, status?: string }) => void} change */
function filters(change) {
  /** @type {ReturnType<typeof setTimeout>} */
  let typing;
  return [
    searchField({
      id: "deliveries-search",
      label: "Search",
      placeholder: "GUID, event, repository or reason",
      change: (search) => {
        clearTimeout(typing);
        typing = setTimeout(() => change({ search }), 250);
      },
    }),
    choice({
      id: "deliveries-status",
      label: "Status",
      options: [
        ["", "All"],
        ["failed", "Failed"],
        ["pending", "Pending"],
        ["applied", "Applied"],
        ["ignored", "Ignored"],
      ],
      change: (status) => change({ status }),
    }),
  ];
}

/** @param {Page} page */
function replayFailed(page) {
  const outcome = h("div", { class: "outcome", role: "status" });
  const failed = button("Replay all that failed", async (event) => {
    const pressed = event.currentTarget;
    const question = {
      title: "Replay all failed deliveries?",
      text: "Each is applied once more. To apply one twice changes nothing.",
      yes: "Replay all",
    };
    if (!(await ask(question))) return;
    await run(
      { command: "deliveries replay", flags: ["failed"] },
      { button: pressed, outcome, begins: "Applying them once more …", ends: replayed },
    );
    page.refresh();
  });
  return h("div", { class: "end" }, failed, outcome);
}

/** @param {any} row @param {HTMLElement} outcome @param {Page} page */
export function actions(row, outcome, page) {
  const about = `${row.event} ${row.guid}`;
  return h(
    "span",
    { class: "buttons" },
    button("Payload", (event) => showPayload(row, event.currentTarget, outcome), { label: `Payload of ${about}` }),
    button(
      "Replay",
      async (event) => {
        await run(
          { command: "deliveries replay", words: [row.id] },
          { button: event.currentTarget, outcome, begins: "Applying it once more …", ends: replayed },
        );
        page.refresh();
      },
      { label: `Replay ${about}` },
    ),
  );
}

/** @param {import("./commands.js").Told} told */
function replayed({ document: { replayed: count, deliveries, ...counts }, code }) {
  if (count === 0) return "No delivery has failed: there is nothing to replay.";
  const parts = Object.entries(counts).flatMap(([status, some]) => (some > 0 ? [`${grouped(some)} ${status}`] : []));
  const reason = code === 0 ? null : deliveries.find((/** @type {any} */ each) => each.reason)?.reason;
  return h(
    "span",
    {},
    `${counted(count, "delivery", "deliveries")} replayed: ${parts.join(", ")}`,
    reason && ". ",
    reason && inWords(reason),
  );
}

/**
 * @param {any} row
 * @param {EventTarget | null} pressed
 * @param {HTMLElement} outcome
 */
async function showPayload(row, pressed, outcome) {
  const told = await run(
    { command: "deliveries show", words: [row.id], flags: ["payload"] },
    { button: pressed, outcome, begins: "Reading it …", ends: () => null },
  );
  if (!told) return;
  outcome.className = "outcome";
  const [delivery] = told.document.deliveries;
  const text = "payload" in delivery ? JSON.stringify(delivery.payload, null, 2) : "It is no longer kept.";
  const isCut = text.length > MOST_SHOWN;
  const facts = /** @type {[string, string][]} */ ([
    ["GUID", row.guid],
    ["Hook", row.hookId === 0 ? "not named" : String(row.hookId)],
    ["Attempts", grouped(row.attempts)],
    ["Size", `${grouped(delivery.payloadBytes)} bytes`],
    ...(row.reason ? [["Reason", row.reason]] : []),
  ]);
  const dialog = /** @type {HTMLDialogElement} */ (
    h(
      "dialog",
      { class: "large", "aria-labelledby": "payload-title", close: () => dialog.remove() },
      h("h2", { id: "payload-title" }, row.action === null ? row.event : `${row.event}.${row.action}`),
      h("dl", { class: "facts" }, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      h("pre", { tabindex: "0", role: "region", "aria-label": "Payload" }, text.slice(0, MOST_SHOWN)),
      isCut &&
        h(
          "p",
          { class: "muted" },
          "Only its beginning is shown: ",
          inWords(`\`tain deliveries show --payload ${row.id}\``),
          " prints it whole.",
        ),
      h("form", { method: "dialog", class: "buttons" }, h("button", {}, "Close")),
    )
  );
  document.body.append(dialog);
  dialog.showModal();
  fill(outcome);
}
