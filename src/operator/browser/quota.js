// Upstream's quota: how the hour went, where it goes, and who spends it.
import { inWords } from "./commands.js";
import { fill, h } from "./dom.js";
import { plot, sentence } from "./plot.js";
import { Table } from "./table.js";
import { badge, clock, grouped, inOf, now } from "./words.js";

/** More would be a wall. The emptiest come first. */
const MOST_PLOTS = 24;

/** @type {Record<string, string>} */
const CLASSES = {
  caller: "A caller who waits",
  refresh: "Refreshes",
  "catch-up": "Catch-ups and sweeps",
  audit: "Audits, and reads for callers",
  backfill: "First copies",
};

export function create() {
  const plots = h("div", { class: "plots" });
  const refused = h("section", { class: "problems", "aria-label": "Credentials that cannot be used", hidden: true });
  const unknown = h(
    "p",
    { class: "trouble", hidden: true },
    "Redis does not answer, so it is not known how the last hour went.",
  );
  /** @type {Table<any>} */
  const table = new Table({
    caption: "What took the mirror's quota within the last hour, the most first",
    keyOf: (/** @type {any} */ row) => [row.class, row.bucket, row.route, row.caller].join(" "),
    empty: "Nothing was spent within the last hour.",
    columns: COLUMNS,
  });
  return {
    element: h(
      "div",
      {},
      h("h1", { tabindex: "-1" }, "Quota"),
      refused,
      unknown,
      plots,
      h("h2", {}, "Who spends it"),
      table.element,
    ),
    asked: () => /** @type {const} */ (["quota", {}]),
    /** @param {any} data */
    show({ quota, history, spent, isCopying }) {
      const problems = new Map(
        quota.flatMap((/** @type {any} */ { name, problem }) => (problem === null ? [] : [[name, problem]])),
      );
      refused.hidden = problems.size === 0;
      unknown.hidden = history !== null && spent !== null;
      table.element.hidden = spent === null;
      fill(
        refused,
        ...[...problems].map(([name, problem]) =>
          h("p", { class: "trouble" }, `The ${name} cannot be used: `, inWords(problem), "."),
        ),
      );
      const known = quota.filter((/** @type {any} */ one) => one.limit !== null);
      known.sort(
        (/** @type {any} */ one, /** @type {any} */ other) => one.remaining / one.limit - other.remaining / other.limit,
      );
      fill(
        plots,
        ...known
          .slice(0, MOST_PLOTS)
          .map((/** @type {any} */ one, /** @type {number} */ at) =>
            card(one, history ?? [], { index: at, isCopying }),
          ),
        known.length === 0 &&
          history !== null &&
          h("p", { class: "empty" }, "No answer of upstream's has told a quota yet."),
      );
      const rows = spent ?? [];
      const most = Math.max(1, ...rows.map((/** @type {any} */ { cost }) => cost));
      table.show(rows.map((/** @type {any} */ row) => ({ ...row, most })));
    },
  };
}

/** @type {import("./table.js").Column<any>[]} */
const COLUMNS = [
  { title: "Spent by", cell: (row) => CLASSES[row.class] ?? row.class, sort: (row) => row.class },
  { title: "On", isWide: true, cell: ({ route }) => h("code", {}, route), sort: ({ route }) => route },
  {
    title: "For",
    cell: ({ who }) => who ?? h("span", { class: "muted" }, "the mirror"),
    sort: ({ who }) => who ?? "",
  },
  { title: "Bucket", cell: ({ bucket }) => bucketOf(bucket), sort: ({ bucket }) => bucket },
  {
    title: "Spent",
    isFigure: true,
    cell: ({ cost, most }) =>
      h(
        "span",
        { class: "spent" },
        h("meter", { min: 0, max: most, value: cost, "aria-hidden": "true" }),
        ` ${grouped(cost)}`,
      ),
    sort: ({ cost }) => cost,
  },
];

/**
 * @param {any} one
 * @param {any[]} history
 * @param {{ index: number, isCopying: boolean }} how
 */
function card(one, history, { index, isCopying }) {
  const { name, credential, bucket, limit, remaining, resetAt, blockedUntil, sharedWith, outlook } = one;
  const at = now();
  const points = history.flatMap(({ at: noted, figures }) =>
    figures.flatMap((/** @type {any} */ figure) =>
      figure.credential === credential && figure.bucket === bucket ? [{ at: noted, ...figure }] : [],
    ),
  );
  points.push({ at, limit, remaining, resetAt: Date.parse(resetAt) });
  const id = `plot-${index}`;
  const every = points.filter((_, step) => (points.length - 1 - step) % 20 === 0);
  return h(
    "section",
    { class: "card", "aria-labelledby": `${id}-head` },
    h("h2", { id: `${id}-head` }, bucketOf(bucket), h("span", { class: "muted" }, ` ${name}`)),
    h(
      "p",
      { class: "left" },
      h("strong", {}, grouped(remaining)),
      h("span", { class: "muted" }, ` of ${grouped(limit)} left, resets ${inOf(resetAt)}`),
      blockedUntil && badge("bad", `upstream asked for silence, until ${clock(Date.parse(blockedUntil))}`),
      sharedWith.length > 0 && h("span", { class: "muted" }, `, the same user's as ${sharedWith.join(", ")}`),
    ),
    plot(points, outlook, {
      id,
      title: `What was left of ${bucketOf(bucket)} of the ${name} within the last hour`,
      now: at,
    }),
    h(
      "p",
      { class: "outlook" },
      isCopying
        ? "A first copy is under way. It leaves a tenth of the window, and its pace foretells nothing."
        : sentence(points, outlook, at),
    ),
    h(
      "details",
      {},
      h("summary", {}, "In figures"),
      h(
        "table",
        { class: "plain" },
        h("caption", {}, "What was left, every five minutes"),
        h(
          "thead",
          {},
          h("tr", {}, h("th", { scope: "col" }, "At"), h("th", { scope: "col", class: "figure" }, "Left")),
        ),
        h(
          "tbody",
          {},
          ...every
            .toReversed()
            .map((/** @type {any} */ point) =>
              h(
                "tr",
                {},
                h("th", { scope: "row" }, clock(point.at)),
                h("td", { class: "figure" }, grouped(point.remaining)),
              ),
            ),
        ),
      ),
    ),
  );
}

/** @param {string} bucket */
function bucketOf(bucket) {
  return { core: "REST", graphql: "GraphQL", search: "Search" }[bucket] ?? bucket;
}
