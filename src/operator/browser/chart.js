// Figures over an hour or a day, drawn, with a legend and a table of the same figures.
import { fill, h, s } from "./dom.js";
import { clock } from "./words.js";

/**
 * @typedef {object} Slot one stretch of time
 * @property {number} at when it began, epoch ms
 * @property {boolean} isKnown false: no process has told of it
 * @property {(number | null)[]} values of each line; null: there is none
 */

/**
 * @typedef {object} ChartShape
 * @property {string} id
 * @property {string} title
 * @property {readonly string[]} lines what each line shows
 * @property {(value: number) => string} say
 */

/** @typedef {{ slots: Slot[], slotMs: number, total: string, rest: string }} Drawn `total` and `rest`: the whole time in words */

const WIDTH = 560;
const HEIGHT = 168;
const EDGE = { left: 52, right: 24, top: 10, bottom: 26 };
const CLASSES = ["one", "two", "three"];
/** Tops of the scale within a power of ten. Half of each is a round figure. */
const TOPS = [1, 2, 4, 6, 8, 10];
const HOUR_MS = 3_600_000;

export class Chart {
  /** @param {ChartShape} shape */
  constructor(shape) {
    this.shape = shape;
    const { id, title } = shape;
    this.total = h("strong", {});
    this.rest = h("span", { class: "muted" });
    this.unknown = h("p", { class: "doubt", hidden: true });
    this.drawing = h("div", {}, h("p", { class: "muted" }, "This is not known yet."));
    this.details = h("details", { toggle: () => this.#tabulate() }, h("summary", {}, "In figures"));
    this.table = h("div", {
      class: "figures-behind",
      tabindex: "0",
      role: "region",
      "aria-label": `${title} in figures`,
    });
    this.details.append(this.table);
    this.element = h(
      "section",
      { class: "card chart", "aria-labelledby": `${id}-head` },
      h("h2", { id: `${id}-head` }, title),
      h("p", { class: "left" }, this.total, this.rest),
      this.unknown,
      h("ul", { class: "legend" }, ...shape.lines.map((name, at) => h("li", {}, sample(at), name))),
      this.drawing,
      this.details,
    );
    /** @type {Drawn | null} */
    this.drawn = null;
  }

  /** @param {Drawn} drawn */
  show(drawn) {
    this.drawn = drawn;
    const gap = gapOf(drawn);
    fill(this.total, drawn.total);
    fill(this.rest, drawn.rest && ` ${drawn.rest}`);
    this.unknown.hidden = gap === null;
    fill(this.unknown, gap);
    fill(this.drawing, this.#draw(drawn, gap));
    this.#tabulate();
  }

  /**
   * @param {Drawn} drawn
   * @param {string | null} gap
   */
  #draw({ slots, slotMs, total, rest }, gap) {
    const { id, title, say } = this.shape;
    const from = slots[0]?.at ?? 0;
    const to = (slots.at(-1)?.at ?? 0) + slotMs;
    const top = topOf(Math.max(0, ...slots.flatMap(({ values }) => values.map((value) => value ?? 0))));
    const x = (/** @type {number} */ at) => EDGE.left + ((at - from) / (to - from)) * (WIDTH - EDGE.left - EDGE.right);
    const y = (/** @type {number} */ value) => HEIGHT - EDGE.bottom - (value / top) * (HEIGHT - EDGE.top - EDGE.bottom);
    return s(
      "svg",
      { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-labelledby": `${id}-title ${id}-text` },
      s("title", { id: `${id}-title` }, title),
      s("desc", { id: `${id}-text` }, [total, rest, gap].filter(Boolean).join(" ")),
      ...slots
        .filter(({ isKnown }) => !isKnown)
        .map(({ at }) =>
          s("rect", {
            ...{ class: "unknown", x: x(at), y: EDGE.top },
            ...{ width: x(at + slotMs) - x(at) + 0.4, height: y(0) - EDGE.top },
          }),
        ),
      ...[0, 0.5, 1].flatMap((part) => [
        s("line", { class: "grid", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y(top * part), y2: y(top * part) }),
        s("text", { class: "tick", x: EDGE.left - 6, y: y(top * part) + 4, "text-anchor": "end" }, say(top * part)),
      ]),
      ...ticks(from, to).map((at) =>
        s("text", { class: "tick", x: x(at), y: HEIGHT - 7, "text-anchor": "middle" }, clock(at)),
      ),
      ...this.shape.lines.flatMap((_, line) => curves(slots, line, (at) => x(at + slotMs / 2), y)),
    );
  }

  /** The table is made once somebody opens it. */
  #tabulate() {
    if (!this.drawn || !(/** @type {HTMLDetailsElement} */ (this.details).open)) return;
    const { slots } = this.drawn;
    const { title, lines, say } = this.shape;
    fill(
      this.table,
      h(
        "table",
        { class: "plain" },
        h("caption", {}, `${title}, the newest first`),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "From"),
            ...lines.map((name) => h("th", { scope: "col", class: "figure" }, name)),
          ),
        ),
        h(
          "tbody",
          {},
          ...slots
            .toReversed()
            .map(({ at, isKnown, values }) =>
              h(
                "tr",
                {},
                h("th", { scope: "row" }, clock(at)),
                ...values.map((value) =>
                  h("td", { class: "figure" }, isKnown ? (value === null ? "–" : say(value)) : "not known"),
                ),
              ),
            ),
        ),
      ),
    );
  }
}

/** How a line looks, for the legend. @param {number} at */
function sample(at) {
  return s(
    "svg",
    { class: "sample", viewBox: "0 0 24 8", "aria-hidden": "true" },
    s("path", { class: `line ${CLASSES[at]}`, d: "M1 4H23" }),
  );
}

/**
 * A line for each stretch without a gap, and a dot for a value that stands alone. Pure.
 * @param {readonly Slot[]} slots
 * @param {number} line
 * @param {(at: number) => number} x
 * @param {(value: number) => number} y
 */
function curves(slots, line, x, y) {
  /** @type {[x: string, y: string][][]} */
  const runs = [[]];
  for (const { at, values } of slots) {
    const value = values[line] ?? null;
    if (value === null) runs.push([]);
    else runs.at(-1)?.push([x(at).toFixed(1), y(value).toFixed(1)]);
  }
  return runs.flatMap((run) => {
    const [first] = run;
    if (!first) return [];
    if (run.length === 1) return [s("circle", { class: `dot ${CLASSES[line]}`, cx: first[0], cy: first[1], r: 2.5 })];
    return [s("path", { class: `line ${CLASSES[line]}`, d: `M${run.map((point) => point.join(" ")).join("L")}` })];
  });
}

/**
 * Since when nothing is known; null: the newest figures are there. Pure but for the time zone.
 * @param {{ slots: readonly Slot[], slotMs: number }} drawn
 */
function gapOf({ slots, slotMs }) {
  const last = slots.findLast(({ isKnown }) => isKnown);
  const [first] = slots;
  const end = slots.at(-1);
  if (!first || !end) return null;
  if (!last) return `No data since ${clock(first.at)}, or longer: no process has counted.`;
  // The last one may still be on its way.
  return end.at - last.at > slotMs ? `No data since ${clock(last.at + slotMs)}: no process has counted.` : null;
}

/** The next round figure, of which the half is round, too. Pure. @param {number} most */
function topOf(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(2, most)));
  const top = (TOPS.find((one) => one * power >= most) ?? 10) * power;
  return Math.max(2, top);
}

/**
 * Round moments: quarters of an hour, or every four hours of the day here. Pure but for the time zone.
 * @param {number} from
 * @param {number} to
 */
function ticks(from, to) {
  const isHour = to - from <= 2 * HOUR_MS;
  const step = HOUR_MS / 4;
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const date = new Date(at);
    if (isHour || (date.getMinutes() === 0 && date.getHours() % 4 === 0)) found.push(at);
  }
  return found;
}
