// Lists of what is mirrored: the repositories, and the issues and pull requests of one.
import { ask } from "./browse-asking.js";
import { freshness, origins } from "./browse-origin.js";
import { newestSql, REPOSITORIES_SQL } from "./browse-sql.js";
import { h } from "./dom.js";
import { badge, counted, grouped, moment } from "./words.js";

const PAGE = 30;

/**
 * The repositories that the token shows.
 * @param {{ page: number }} place
 */
export async function repositories({ page }) {
  const answer = await ask(`/user/repos?sort=full_name&per_page=${PAGE}&page=${page}`);
  const columns = ["Repository", "About", "Open", "Changed"];
  const rows = answer.body.map((/** @type {any} */ one) =>
    h(
      "tr",
      {},
      h(
        "th",
        { scope: "row" },
        h("a", { class: "name", href: `#/${one.full_name}` }, one.full_name),
        " ",
        one.private ? badge("off", "private") : null,
        one.archived ? badge("off", "archived") : null,
      ),
      cell("About", "wide", one.description),
      cell("Open", "figure", grouped(one.open_issues_count ?? 0)),
      cell("Changed", "moment", moment(one.updated_at)),
    ),
  );
  return h(
    "div",
    {},
    h("h1", { tabindex: "-1" }, "Repositories"),
    freshness(answer),
    tableOf("What this token is shown of the mirror", columns, rows, "No repository is shown to this token."),
    pages(answer, "#/?", page),
    origins([answer], REPOSITORIES_SQL),
  );
}

/**
 * What a search finds in a repository, in the service's grammar.
 * @param {{ owner: string, name: string, page: number, query: string }} place
 */
export async function issues({ owner, name, page, query }) {
  const repository = `${owner}/${name}`;
  const asked = new URLSearchParams({ q: `repo:${repository} ${query}`, per_page: String(PAGE), page: String(page) });
  const [answer, labels] = await Promise.all([
    ask(`/search/issues?${asked}`),
    ask(`/repos/${repository}/labels?per_page=100`),
  ]);
  const rows = answer.body.items.map((/** @type {any} */ one) =>
    h(
      "tr",
      {},
      h(
        "th",
        { scope: "row" },
        h("a", { class: "name", href: addressOf(repository, one) }, one.title),
        " ",
        h("span", { class: "muted" }, `#${one.number}`),
        " ",
        ...labelsOf(one.labels),
      ),
      cell("State", "", stateOf(one)),
      cell("By", "wide", one.user?.login ?? "ghost"),
      cell("Comments", "figure", grouped(one.comments)),
      cell("Changed", "moment", moment(one.updated_at)),
    ),
  );
  const base = `#/${repository}?${new URLSearchParams({ q: query })}&`;
  return h(
    "div",
    {},
    h("h1", { tabindex: "-1" }, repository),
    freshness(answer),
    searchForm(repository, query, labels.body),
    tableOf(
      `${counted(answer.body.total_count, "result")}${answer.body.incomplete_results ? ", of a part alone" : ""}`,
      ["What", "State", "By", "Comments", "Changed"],
      rows,
      "Nothing fits.",
    ),
    pages(answer, base, page),
    origins([answer, labels], newestSql(repository)),
  );
}

const USUAL = /** @type {const} */ ([
  ["Open issues", "is:issue is:open"],
  ["Open pull requests", "is:pr is:open"],
  ["Merged", "is:pr is:merged"],
  ["Closed", "is:issue is:closed"],
]);

/** What is shown of a repository first. */
export const FIRST = USUAL[0][1];

/**
 * @param {string} repository
 * @param {string} query
 * @param {any[]} labels
 */
function searchForm(repository, query, labels) {
  const field = /** @type {HTMLInputElement} */ (
    h("input", { id: "query", type: "search", value: query, spellcheck: false, size: 48, list: "labels" })
  );
  const go = (/** @type {Event} */ event) => {
    event.preventDefault();
    location.hash = `#/${repository}?${new URLSearchParams({ q: field.value.trim() })}`;
  };
  return h(
    "form",
    { class: "bar", role: "search", submit: go },
    h(
      "div",
      { class: "field" },
      h("label", { for: "query" }, "Search, in the service's words: label:bug author:octocat in:title crash"),
      field,
      h(
        "datalist",
        { id: "labels" },
        ...labels.map(({ name }) => h("option", { value: `${query} label:"${name}"`.trim() })),
      ),
    ),
    h("button", { class: "primary" }, "Search"),
    h(
      "p",
      { class: "usual" },
      ...USUAL.flatMap(([title, each]) => [
        h("a", { href: `#/${repository}?${new URLSearchParams({ q: each })}` }, title),
        " ",
      ]),
    ),
  );
}

/**
 * @param {string} repository
 * @param {any} one
 */
function addressOf(repository, one) {
  return `#/${repository}/${one.pull_request ? "pull" : "issues"}/${one.number}`;
}

/** @param {any} one an issue or pull request, as REST shows it */
export function stateOf(one) {
  if (one.pull_request?.merged_at ?? one.merged_at) return badge("busy", "merged");
  if (one.state === "open") return badge("good", one.draft ? "draft" : "open");
  return badge("off", one.state_reason === "not_planned" ? "not planned" : "closed");
}

/** @param {any[]} labels */
export function labelsOf(labels) {
  return labels.flatMap(({ name, color }) => {
    const dot = h("span", { class: "dot", "aria-hidden": "true" });
    dot.style.background = `#${color}`;
    return [h("span", { class: "label" }, dot, name), " "];
  });
}

/**
 * A cell, with its column's title for a screen that has no room for the heading.
 * @param {string} title
 * @param {string} kind
 * @param {import("./dom.js").Child} child
 */
function cell(title, kind, child) {
  return h("td", { class: kind || null, "data-label": title }, child);
}

/**
 * @param {string} caption
 * @param {readonly string[]} columns
 * @param {Node[]} rows
 * @param {string} empty
 */
function tableOf(caption, columns, rows, empty) {
  if (rows.length === 0) return h("p", { class: "card" }, empty);
  const heads = columns.map((title) =>
    h("th", { scope: "col", class: /^(Open|Comments)$/.test(title) ? "figure" : null }, title),
  );
  return h(
    "div",
    { class: "table" },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows)),
  );
}

/**
 * @param {import("./browse-asking.js").Answer} answer
 * @param {string} base
 * @param {number} page
 */
function pages({ pages: known }, base, page) {
  if (!known.next && !known.prev) return null;
  return h(
    "nav",
    { class: "bar", "aria-label": "Pages" },
    known.prev ? h("a", { href: `${base}page=${page - 1}`, rel: "prev" }, "Before") : null,
    h("span", { class: "muted" }, `Page ${page}`),
    known.next ? h("a", { href: `${base}page=${page + 1}`, rel: "next" }, "After") : null,
  );
}
