// One delivery's whole way: when it arrived, was stored and applied, what it changed, and where that was sent.
import { inWords } from "./commands.js";
import { actions, TONES } from "./deliveries.js";
import { fill, h } from "./dom.js";
import { Table } from "./table.js";
import { badge, counted, grouped, inOf, moment, spanOf } from "./words.js";

const GONE =
  "The inbox does not hold this delivery. It was never received, or it was settled longer ago than `DELIVERY_RETENTION`.";

/** @type {Record<string, string>} */
const STATES = {
  waiting: "its job waits for a worker",
  prioritized: "its job waits for a worker",
  active: "a worker is applying it",
  delayed: "its job waits to be tried again",
};

export function create(/** @type {{ refresh: () => void }} */ page) {
  const title = h("h1", { tabindex: "-1" }, "Delivery");
  const about = h("p", { class: "muted" });
  const outcome = h("div", { class: "outcome", role: "status" });
  const bar = h("div", { class: "bar" });
  const steps = h("ol", { class: "way" });
  /** @type {Table<any>} */
  const sent = new Table({
    caption: "The requests to targets, the oldest first",
    keyOf: (/** @type {any} */ row) => `${row.targetId} ${row.sentAt}`,
    empty: "No request was made.",
    columns: SENT,
  });
  const sending = h("section", {}, h("h2", {}, "Sent to targets"), sent.element);
  const back = h("p", {}, h("a", { href: "#deliveries" }, "All deliveries"));
  /** What the buttons belong to: they stay while it is the same. */
  let of = "";
  return {
    element: h("div", {}, title, about, bar, outcome, steps, sending, back),
    opened() {
      if (location.hash.endsWith(`/${of}`)) return;
      sending.hidden = true;
      fill(title, "Delivery");
      for (const each of [about, outcome, bar, steps]) fill(each);
      of = "";
    },
    asked: () => /** @type {const} */ (["delivery", { id: location.hash.split("/")[1] ?? "" }]),
    /** @param {{ way: any }} data */
    show({ way }) {
      sending.hidden = way === null;
      if (way === null) return void fill(steps, h("li", {}, inWords(GONE)));
      const { delivery } = way;
      fill(title, nameOf(delivery));
      fill(about, delivery.repository ?? "no repository that is mirrored", ", ", h("code", {}, delivery.guid));
      if (of !== delivery.id) {
        of = delivery.id;
        fill(outcome);
        fill(bar, actions(delivery, outcome, page));
      }
      fill(steps, ...stepsOf(way));
      sent.show(way.sent, sentNone(way));
    },
  };
}

/** @param {any} way */
function stepsOf({ delivery, storedAt, job, events, waiting }) {
  const { hookId, receivedAt } = delivery;
  return [
    step("good", "Arrived", receivedAt, hookId === 0 ? "at a hook that gave no number" : `from hook ${hookId}`),
    step("good", "Stored, and queued", storedAt, "by the clock of Postgres; only then was it acknowledged"),
    applied(delivery, job),
    ...events.map(changed),
    events.length === 0 && step("off", "Told nobody", null, toldNothing(delivery)),
    ...waiting.map((/** @type {any} */ { targetId, url, retryAt }) =>
      step("busy", `Waits for target ${targetId}`, null, url, retryAt && `, tried again ${inOf(retryAt)}`),
    ),
  ];
}

/**
 * @param {"good" | "busy" | "warn" | "bad" | "off"} tone
 * @param {string} what
 * @param {string | null} at
 * @param {...import("./dom.js").Child} more
 */
function step(tone, what, at, ...more) {
  return h(
    "li",
    { class: tone },
    h("strong", {}, what),
    at && h("span", { class: "at" }, exact(at), " ", h("span", { class: "muted" }, moment(at))),
    h("span", { class: "told" }, ...more),
  );
}

/** @param {any} delivery @param {any} job */
function applied({ status, settledAt, receivedAt, attempts, reason }, job) {
  const tone = TONES[/** @type {keyof typeof TONES} */ (status)];
  if (status === "pending") return step(tone, "Not applied yet", null, waits(job), job?.reason && `: ${job.reason}`);
  const took = Date.parse(settledAt) - Date.parse(receivedAt);
  const words = { applied: "Applied", ignored: "Ignored", failed: "Failed" };
  return step(
    tone,
    words[/** @type {keyof typeof words} */ (status)],
    settledAt,
    // The clock may have been put back meanwhile.
    took >= 0 && `${took < 1_000 ? `${took} ms` : spanOf(took)} after it arrived`,
    attempts > 1 && `, at attempt ${grouped(attempts)}`,
    reason && ": ",
    reason && inWords(reason),
  );
}

/** @param {any} job */
function waits(job) {
  if (job === "unknown") return "Redis does not answer, so it is not known whether a job waits";
  if (job === null) return "it has no job of its own: it shares one, or the scheduler queues it within seconds";
  const tried = job.attempts > 0 ? `, tried ${counted(job.attempts, "time")}` : "";
  return h("span", {}, STATES[job.state] ?? `its job is ${job.state}`, tried, ", queued ", moment(job.queuedAt));
}

/** @param {any} event */
function changed({ id, event, action, repository, page, number, isPullRequest, isOwn }) {
  const name =
    number === null ? repository : `${repository ?? "?"} ${isPullRequest ? "pull request" : "issue"} #${number}`;
  return step(
    id === null ? "busy" : "good",
    "Told as an event",
    null,
    h("code", {}, action === null ? event : `${event}.${action}`),
    name && " of ",
    name && (page === null ? name : h("a", { href: page, rel: "noreferrer", target: "_blank" }, `${name} at upstream`)),
    id === null ? ", once the deliveries before it are settled" : `, at place ${grouped(id)} of the log`,
    !isOwn && ". Another hook's delivery with this GUID was first",
  );
}

/** @param {{ status: string }} delivery */
function toldNothing({ status }) {
  if (status === "pending") return "its event is written when it is applied";
  return status === "applied" ? "its event is no longer kept" : "nothing of it was applied";
}

/** @param {any} way */
function sentNone({ events, waiting }) {
  if (events.length === 0) return "There is no event to be sent.";
  return waiting.length > 0
    ? "It waits to be sent."
    : "No target was sent it: none wanted it, or its requests are no longer kept.";
}

/** @type {import("./table.js").Column<any>[]} */
const SENT = [
  {
    title: "Target",
    isWide: true,
    cell: ({ targetId, url }) =>
      h(
        "span",
        { class: "stack" },
        h("span", { class: "name url" }, url),
        h("a", { href: "#targets" }, `target ${targetId}`),
      ),
  },
  {
    title: "Answer",
    cell: ({ status, statusCode }) =>
      badge(
        statusCode >= 200 && statusCode < 300 ? "good" : "bad",
        statusCode > 0 ? `${statusCode} ${status}` : status,
      ),
  },
  { title: "Sent", cell: ({ sentAt, redelivery }) => h("span", {}, exact(sentAt), redelivery && " (again)") },
  { title: "Took", isFigure: true, cell: ({ durationMs }) => `${grouped(durationMs)} ms` },
];

/** @param {{ event: string, action: string | null }} delivery */
function nameOf({ event, action }) {
  return action === null ? event : `${event}.${action}`;
}

/** To the millisecond, in this machine's time zone. @param {string} at */
function exact(at) {
  const date = new Date(at);
  const time = date.toLocaleTimeString("en-GB", {
    ...{ hour: "2-digit", minute: "2-digit", second: "2-digit" },
    fractionalSecondDigits: 3,
  });
  return h("time", { title: date.toLocaleString() }, time);
}
