// Where an answer comes from: its freshness, its JSON, and how else it is asked.
import { h } from "./dom.js";
import { moment } from "./words.js";

/**
 * @param {import("./browse-asking.js").Answer} answer
 * @returns {HTMLElement}
 */
export function freshness({ confirmedAt, isForwarded, hint }) {
  const line = h("p", { class: "muted freshness" });
  if (isForwarded) line.append("Upstream answered this itself.");
  else if (confirmedAt === null) line.append("Upstream has not confirmed this yet.");
  else line.append("Upstream confirmed this ", moment(confirmedAt), ".");
  if (hint !== null) line.append(` ${hint}`);
  return line;
}

/**
 * The requests that were asked, each with its JSON, and a query that finds the same in the database.
 * @param {readonly import("./browse-asking.js").Answer[]} answers
 * @param {string} sql
 */
export function origins(answers, sql) {
  return h(
    "section",
    { class: "origins", "aria-label": "Where this comes from" },
    ...answers.map(({ path, body }) =>
      opened(
        "JSON",
        path,
        `curl -H "Authorization: Bearer $TOKEN" '${location.origin}${path}'\n\n${JSON.stringify(body, null, 2)}`,
      ),
    ),
    opened("SQL", "tain sql", sql),
  );
}

/**
 * @param {string} what
 * @param {string} of
 * @param {string} text
 */
function opened(what, of, text) {
  return h(
    "details",
    {},
    h("summary", {}, `${what} `, h("code", {}, of)),
    h("pre", { tabindex: 0, "aria-label": `${what} of ${of}` }, text),
  );
}
