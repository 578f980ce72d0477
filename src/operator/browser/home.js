// What is happening: what arrived and was applied, who was answered from where, and what that cost.
import { Chart } from "./chart.js";
import { h } from "./dom.js";
import { choice } from "./table.js";
import { clock, counted, grouped, spanOf } from "./words.js";

/** @typedef {"arrived" | "applied" | "ignored" | "lagMs" | "slowestMs" | "spentRequests" | "spentPoints" | "sparedRequests" | "sparedPoints" | "byMirror" | "byKept" | "byForwarding"} Figure */
/** @typedef {{ at: string } & Record<Figure, number | null>} Row null: not known */
/** @typedef {(figure: Figure) => number} Sums over the whole time, the greatest of `slowestMs` */

const SPANS = /** @type {const} */ ({
  hour: { slotMs: 60_000, slots: 60, name: "The last hour, by the minute" },
  day: { slotMs: 15 * 60_000, slots: 96, name: "The last day, by the quarter of an hour" },
});

const few = new Intl.NumberFormat("en", { notation: "compact" });

/**
 * @typedef {object} Shown
 * @property {Chart} chart
 * @property {Figure} by its figure that says whether anything is known
 * @property {(row: Row) => (number | null)[]} values
 * @property {(sums: Sums) => [total: string, rest: string]} tell
 */

/**
 * @param {string} id
 * @param {string} title
 * @param {[Figure, string][]} lines
 * @param {Shown["tell"]} tell
 * @returns {Shown}
 */
function counts(id, title, lines, tell) {
  const names = lines.map(([, name]) => name);
  return {
    chart: new Chart({
      id,
      title,
      lines: names,
      say: (value) => (value < 10_000 ? grouped(value) : few.format(value)),
    }),
    by: lines[0]?.[0] ?? "arrived",
    values: (row) => lines.map(([figure]) => row[figure]),
    tell,
  };
}

/** @returns {Shown[]} */
function charts() {
  return [
    counts(
      "chart-deliveries",
      "Deliveries",
      [
        ["arrived", "arrived"],
        ["applied", "applied"],
        ["ignored", "ignored"],
      ],
      (of) => [
        `${grouped(of("arrived"))} arrived,`,
        `${grouped(of("applied"))} applied, ${grouped(of("ignored"))} ignored`,
      ],
    ),
    {
      chart: new Chart({
        id: "chart-lag",
        title: "From receipt until applied",
        lines: ["on average", "the slowest"],
        say: lagOf,
      }),
      by: "applied",
      values: ({ applied, lagMs, slowestMs }) =>
        applied && lagMs !== null ? [lagMs / applied, slowestMs] : [null, null],
      tell: (of) =>
        of("applied") > 0
          ? [`${lagOf(of("lagMs") / of("applied"))} on average,`, `the slowest took ${lagOf(of("slowestMs"))}`]
          : ["–", "nothing was applied"],
    },
    counts(
      "chart-answers",
      "Answers to callers",
      [
        ["byMirror", "from the mirror's rows"],
        ["byKept", "kept answers"],
        ["byForwarding", "forwarded"],
      ],
      (of) => {
        const all = of("byMirror") + of("byKept") + of("byForwarding");
        const here = all - of("byForwarding");
        return [
          `${counted(all, "answer")},`,
          all === 0 ? "nobody has asked" : `${percent(here, all)} without asking upstream`,
        ];
      },
    ),
    counts(
      "chart-requests",
      "Upstream's quota, REST",
      [
        ["spentRequests", "spent"],
        ["sparedRequests", "spared"],
      ],
      (of) => [`${counted(of("spentRequests"), "request")} spent,`, `${grouped(of("sparedRequests"))} spared`],
    ),
    counts(
      "chart-points",
      "Upstream's quota, GraphQL",
      [
        ["spentPoints", "spent"],
        ["sparedPoints", "spared"],
      ],
      (of) => [`${counted(of("spentPoints"), "point")} spent,`, `${grouped(of("sparedPoints"))} spared`],
    ),
  ];
}

export function create() {
  /** @type {keyof typeof SPANS} */
  let span = "hour";
  /** @type {any} */
  let activity = null;
  const all = charts();
  const asOf = h("p", { class: "muted" });
  const draw = () => {
    if (activity === null) return;
    asOf.textContent = `All processes together, up to ${clock(Date.parse(activity.until))}.`;
    for (const one of all) one.chart.show(drawn(one, activity, span));
  };
  const spans = choice({
    id: "home-span",
    label: "Shown",
    options: Object.entries(SPANS).map(([value, { name }]) => [value, name]),
    change: (value) => {
      span = value === "day" ? "day" : "hour";
      draw();
    },
  });
  return {
    element: h(
      "div",
      {},
      h("h1", { tabindex: "-1" }, "Home"),
      asOf,
      h("div", { class: "bar" }, spans),
      h("div", { class: "plots" }, ...all.map(({ chart }) => chart.element)),
      h(
        "p",
        { class: "muted" },
        "Spared is what upstream would have charged callers for what they were answered here. Commands in a terminal and edges do not count.",
      ),
    ),
    asked: () => /** @type {const} */ (["home", {}]),
    /** @param {any} data */
    show(data) {
      activity = data.activity;
      draw();
    },
  };
}

/**
 * @param {Shown} one
 * @param {{ until: string, hour: Row[], day: Row[] }} activity
 * @param {keyof typeof SPANS} span
 * @returns {import("./chart.js").Drawn}
 */
function drawn({ by, values, tell }, activity, span) {
  const { slotMs, slots: count } = SPANS[span];
  const rows = new Map(activity[span].map((row) => [Date.parse(row.at), row]));
  const until = Math.floor(Date.parse(activity.until) / slotMs) * slotMs;
  const slots = Array.from({ length: count }, (_, back) => {
    const at = until - (count - back) * slotMs;
    const row = rows.get(at);
    const isKnown = row !== undefined && row[by] !== null;
    return { at, isKnown, values: isKnown ? values(row) : values(UNKNOWN) };
  });
  const known = [...rows.values()];
  const [total, rest] = slots.some(({ isKnown }) => isKnown)
    ? tell((figure) => {
        const told = known.map((row) => row[figure] ?? 0);
        return figure === "slowestMs" ? Math.max(0, ...told) : told.reduce((sum, one) => sum + one, 0);
      })
    : ["Not known", ""];
  return { slots, slotMs, total, rest };
}

/** @type {Row} */
const UNKNOWN = {
  at: "",
  ...{ arrived: null, applied: null, ignored: null, lagMs: null, slowestMs: null },
  ...{ spentRequests: null, spentPoints: null, sparedRequests: null, sparedPoints: null },
  ...{ byMirror: null, byKept: null, byForwarding: null },
};

/** @param {number} ms */
function lagOf(ms) {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${Number((ms / 1_000).toFixed(1))} s` : spanOf(ms);
}

/** Never 100 % of less than all. @param {number} part @param {number} all */
function percent(part, all) {
  return `${part === all ? 100 : Math.min(99, Math.floor((100 * part) / all))} %`;
}
