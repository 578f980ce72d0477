// The hour of one credential's bucket, drawn.
import { s } from "./dom.js";
import { clock, grouped, spanOf } from "./words.js";

/** @typedef {{ at: number, remaining: number, limit: number, resetAt: number }} Point */
/** @typedef {{ perMinute: number, leftAtReset: number, spentAt: string | null }} Outlook null, where it is: too little is known yet */

const WIDTH = 640;
const HEIGHT = 168;
const EDGE = { left: 46, right: 10, top: 10, bottom: 24 };
const HOUR_MS = 3_600_000;

/**
 * Where it goes, in a sentence. Pure but for the time zone.
 * @param {readonly Point[]} points the oldest first
 * @param {Outlook | null} ahead
 * @param {number} now
 */
export function sentence(points, ahead, now) {
  const last = points.at(-1);
  if (!last) return "Nothing was noted within the last hour.";
  if (last.resetAt <= now) return "The window is over, and nothing was asked since.";
  const end = `when the window ends at ${clock(last.resetAt)}`;
  if (!ahead)
    return `${grouped(last.remaining)} of ${grouped(last.limit)} are left. The pace is known in half a minute.`;
  const pace =
    ahead.perMinute < 0.05
      ? "Nothing is spent at the moment"
      : `At the pace of the last minutes, ${ahead.perMinute < 10 ? ahead.perMinute.toFixed(1) : grouped(Math.round(ahead.perMinute))} a minute`;
  if (ahead.spentAt !== null) {
    const spentAt = Date.parse(ahead.spentAt);
    return `${pace}, it is spent at ${clock(spentAt)}, ${spanOf(last.resetAt - spentAt)} before the window ends.`;
  }
  const left = grouped(ahead.leftAtReset);
  return `${pace}, ${ahead.perMinute < 0.05 ? `and ${left} are left` : `about ${left} are left`} ${end}.`;
}

/**
 * @param {readonly Point[]} points
 * @param {Outlook | null} ahead
 * @param {{ id: string, title: string, now: number }} about
 */
export function plot(points, ahead, { id, title, now }) {
  const last = points.at(-1);
  const limit = Math.max(1, ...points.map((point) => point.limit));
  const from = now - HOUR_MS;
  const to = Math.max(now + 10 * 60_000, Math.min(now + HOUR_MS, last?.resetAt ?? 0));
  const x = (/** @type {number} */ at) => EDGE.left + ((at - from) / (to - from)) * (WIDTH - EDGE.left - EDGE.right);
  const y = (/** @type {number} */ value) => HEIGHT - EDGE.bottom - (value / limit) * (HEIGHT - EDGE.top - EDGE.bottom);
  const floor = y(0);
  const shown = points.filter(({ at }) => at >= from);
  // Within a window the line falls from point to point; a new window begins with a step.
  const line = shown
    .map(({ at, remaining }, index) => `${index === 0 ? "M" : "L"}${x(at).toFixed(1)} ${y(remaining).toFixed(1)}`)
    .join("");
  const [first] = shown;
  const area = first && last ? `${line}L${x(last.at).toFixed(1)} ${floor}L${x(first.at).toFixed(1)} ${floor}Z` : "";
  const resets = shown.filter((point, index) => index > 0 && point.resetAt - (shown[index - 1]?.resetAt ?? 0) > 5_000);
  const ticks = hourTicks(from, to);
  return s(
    "svg",
    {
      class: "plot",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-labelledby": `${id}-title ${id}-text`,
      preserveAspectRatio: "none",
    },
    s("title", { id: `${id}-title` }, title),
    s("desc", { id: `${id}-text` }, sentence(points, ahead, now)),
    ...[0, 0.5, 1].flatMap((part) => [
      s("line", { class: "grid", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y(limit * part), y2: y(limit * part) }),
      s(
        "text",
        { class: "tick", x: EDGE.left - 6, y: y(limit * part) + 4, "text-anchor": "end" },
        grouped(Math.round(limit * part)),
      ),
    ]),
    ...ticks.map((at) => s("text", { class: "tick", x: x(at), y: HEIGHT - 6, "text-anchor": "middle" }, clock(at))),
    ...resets.map(({ at }) => s("line", { class: "reset", x1: x(at), x2: x(at), y1: EDGE.top, y2: floor })),
    s("path", { class: "area", d: area }),
    s("path", { class: "line", d: line }),
    s("line", { class: "now", x1: x(now), x2: x(now), y1: EDGE.top, y2: floor }),
    last &&
      ahead &&
      s("line", {
        class: "ahead",
        x1: x(last.at),
        y1: y(last.remaining),
        x2: x(ahead.spentAt === null ? Math.min(to, last.resetAt) : Date.parse(ahead.spentAt)),
        y2: y(ahead.spentAt === null ? ahead.leftAtReset : 0),
      }),
    last && s("circle", { class: "dot", cx: x(last.at), cy: y(last.remaining), r: 3.5 }),
  );
}

/**
 * Round moments of an hour or two. Pure.
 * @param {number} from
 * @param {number} to
 */
function hourTicks(from, to) {
  const every = to - from > 1.5 * HOUR_MS ? 30 * 60_000 : 15 * 60_000;
  const ticks = [];
  for (let at = Math.ceil((from + 5 * 60_000) / every) * every; at < to - 4 * 60_000; at += every) ticks.push(at);
  return ticks;
}
