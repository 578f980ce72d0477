// An issue or a pull request, with what was said and what happened, in the order in which it did.
import { AskError } from "./api.js";
import { ask } from "./browse-asking.js";
import { labelsOf, stateOf } from "./browse-lists.js";
import { freshness, origins } from "./browse-origin.js";
import { oneSql } from "./browse-sql.js";
import { h } from "./dom.js";
import { counted, moment } from "./words.js";

const PAGE = 100;

/**
 * @typedef {{ at: string, element: HTMLElement }} Happened
 */

/** @param {{ owner: string, name: string, kind: "issues" | "pull", number: number }} place */
export async function issue({ owner, name, kind, number }) {
  const repository = `${owner}/${name}`;
  const [home, at] = [`/repos/${repository}`, `/repos/${repository}/issues/${number}`];
  const ofPull = kind === "pull" ? [`${home}/pulls/${number}`, `${home}/pulls/${number}/reviews?per_page=${PAGE}`] : [];
  const [shown, comments, ...pull] = await Promise.all(
    [at, `${at}/comments?per_page=${PAGE}`, ...ofPull].map((path) => ask(path)),
  );
  if (!shown || !comments) throw new AskError("The API has not answered");
  const history = await ask(`${at}/events?per_page=${PAGE}`).catch(unheld);
  const [merging, reviews] = pull;
  const body = { ...shown.body, ...merging?.body, labels: shown.body.labels };
  const happened = [
    ...comments.body.map(said),
    ...(reviews?.body ?? []).filter((/** @type {any} */ one) => one.submitted_at).map(reviewed),
    ...(history instanceof AskError ? [] : history.body.map(did)),
  ].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  const answers = [shown, comments, ...pull, ...(history instanceof AskError ? [] : [history])];
  const isPart = answers.some(({ pages }) => pages.next !== undefined);
  return h(
    "div",
    {},
    h("p", {}, h("a", { href: `#/${repository}` }, repository)),
    h("h1", { tabindex: "-1" }, body.title, " ", h("span", { class: "muted" }, `#${number}`)),
    h(
      "p",
      {},
      stateOf(body),
      ` ${body.user?.login ?? "ghost"} opened this `,
      moment(body.created_at),
      ` · ${counted(shown.body.comments, "comment")}`,
      body.milestone ? ` · ${body.milestone.title}` : "",
      merging ? ` · ${merging.body.head?.label ?? "?"} → ${merging.body.base?.label ?? "?"}` : "",
    ),
    h("p", {}, ...labelsOf(body.labels)),
    freshness(shown),
    message(body.user, body.created_at, body.body),
    ...happened.map(({ element }) => element),
    isPart
      ? h("p", { class: "doubt" }, `Of each list the first ${PAGE} are shown. `, h("a", { href: body.html_url }, "All"))
      : null,
    history instanceof AskError
      ? h("p", { class: "muted" }, `What happened to it is not held: ${history.message}`)
      : null,
    origins(answers, oneSql(repository, kind, number)),
  );
}

/** The mirror may not hold events. @param {unknown} error */
function unheld(error) {
  if (error instanceof AskError) return error;
  throw error;
}

/**
 * @param {any} user
 * @param {string} at
 * @param {string | null} text
 * @param {string} [did]
 */
function message(user, at, text, did = "wrote") {
  return h(
    "article",
    { class: "card message" },
    h("p", { class: "muted" }, h("strong", {}, user?.login ?? "ghost"), ` ${did} `, moment(at)),
    h("div", { class: "text" }, text || h("span", { class: "muted" }, "Nothing is written here.")),
  );
}

/** @param {any} comment @returns {Happened} */
function said({ user, created_at: at, body }) {
  return { at, element: message(user, at, body) };
}

/** @param {any} review @returns {Happened} */
function reviewed({ user, submitted_at: at, state, body }) {
  const did = `reviewed: ${String(state).toLowerCase().replaceAll("_", " ")},`;
  return { at, element: body ? message(user, at, body, did) : line(user, at, did) };
}

/** @param {any} event @returns {Happened} */
function did({ actor, created_at: at, event, label, assignee, milestone, rename }) {
  const what = label?.name ?? assignee?.login ?? milestone?.title ?? (rename ? `${rename.from} → ${rename.to}` : "");
  return { at, element: line(actor, at, `${String(event).replaceAll("_", " ")}${what === "" ? "" : `: ${what}`},`) };
}

/**
 * @param {any} user
 * @param {string} at
 * @param {string} text
 */
function line(user, at, text) {
  return h("p", { class: "muted happened" }, h("strong", {}, user?.login ?? "ghost"), ` ${text} `, moment(at));
}
