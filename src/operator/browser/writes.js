// What callers wrote at upstream through the mirror.
import { button, run } from "./commands.js";
import { fill, h } from "./dom.js";
import { searchField, Table } from "./table.js";
import { badge, counted, moment } from "./words.js";

export function create() {
  let search = "";
  /** @type {any[]} */
  let writes = [];
  const outcome = h("div", { class: "outcome", role: "status" });
  /** @type {Table<any>} */
  const table = new Table({
    caption: "The newest writes: which caller wrote what, and what upstream answered",
    keyOf: (/** @type {any} */ { id }) => id,
    empty: "No write in the record is like that.",
    columns: COLUMNS,
  });
  const show = () =>
    table.show(
      writes.filter((write) =>
        `${write.method} ${write.path} ${write.login} ${write.token} ${write.tokenName ?? ""}`
          .toLowerCase()
          .includes(search),
      ),
    );
  const read = async (/** @type {EventTarget | null} */ pressed) => {
    const told = await run(
      { command: "writes list", values: { limit: "200" } },
      {
        button: pressed,
        outcome,
        begins: "Reading the record …",
        ends: ({ document }) => `${counted(document.writes.length, "write")} of the record`,
      },
    );
    if (told) writes = told.document.writes;
    if (told) outcome.className = "outcome";
    show();
  };
  fill(outcome, "");
  return {
    element: h(
      "div",
      {},
      h("h1", { tabindex: "-1" }, "Writes"),
      h(
        "div",
        { class: "bar" },
        searchField({
          id: "writes-search",
          label: "Search",
          placeholder: "path, login or token",
          change: (value) => {
            search = value.toLowerCase();
            table.release();
            show();
          },
        }),
        h(
          "div",
          { class: "end" },
          button("Look again", (event) => read(event.currentTarget)),
          outcome,
        ),
      ),
      table.element,
    ),
    asked: () => null,
    opened: () => void read(null),
    show: () => {},
  };
}

/** @type {import("./table.js").Column<any>[]} */
const COLUMNS = [
  {
    title: "Wrote",
    isWide: true,
    cell: ({ method, path }) => h("span", { class: "name url" }, `${method} ${path}`),
    sort: ({ path }) => path,
  },
  { title: "Answer", cell: answerOf, sort: ({ status }) => status ?? 0 },
  { title: "Begun", cell: ({ begunAt }) => moment(begunAt), sort: ({ begunAt }) => -Date.parse(begunAt) },
  { title: "Who", cell: ({ login, userId }) => login ?? `user ${userId}`, sort: ({ login }) => login ?? "" },
  {
    title: "Token",
    cell: ({ token, tokenName, tokenOf }) =>
      h("span", {}, tokenOf === "own" ? "Tain's " : "upstream's ", h("code", { title: token }, tokenName ?? token)),
  },
  {
    title: "Asked by",
    cell: ({ route }) => (route === null ? "passed on" : route.startsWith("mutation ") ? route : "REST"),
  },
];

/** @param {any} write */
function answerOf({ outcome, status, endedAt }) {
  if (outcome === "answered") return badge(status < 300 ? "good" : "bad", String(status));
  if (outcome === "unsent") return badge("off", "not sent");
  return badge("warn", endedAt === null ? "under way, or unknown" : "unknown");
}
