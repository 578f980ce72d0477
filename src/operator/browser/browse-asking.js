// What is asked to look at the mirror: its API, with the token of who looks. So nobody is shown more than the API shows.
import { AskError, bodyOf, reach } from "./api.js";

/** Kept for this tab alone, and gone with it. */
const KEPT = "tain-token";

export const token = () => sessionStorage.getItem(KEPT);

/** @param {string | null} text */
export function keepToken(text) {
  if (text === null) sessionStorage.removeItem(KEPT);
  else sessionStorage.setItem(KEPT, text);
}

/** The token is missing, or the API refuses it. */
export class TokenError extends AskError {}

/**
 * @typedef {object} Answer
 * @property {string} path
 * @property {any} body
 * @property {string | null} confirmedAt when upstream confirmed it, ISO 8601
 * @property {boolean} isForwarded whether upstream answered itself
 * @property {string | null} hint what is missing, in words
 * @property {Record<string, string>} pages addresses of other pages, by their relation: next, prev, last
 */

/**
 * Asks the API for a path.
 * @param {string} path
 * @returns {Promise<Answer>}
 */
export async function ask(path) {
  const shown = token();
  const asked = { Accept: "application/vnd.github+json", ...(shown && { Authorization: `Bearer ${shown}` }) };
  const response = await reach(path, { headers: asked, credentials: "omit" });
  const body = bodyOf(response);
  const { headers } = response;
  return {
    path,
    body: await (response.status === 401 ? body.catch(asTokenError) : body),
    confirmedAt: headers.get("X-Tain-Confirmed-At"),
    isForwarded: headers.has("X-Tain-Passed-Through"),
    hint: headers.get("X-Tain-Hint"),
    pages: pagesIn(headers.get("Link")),
  };
}

/** @param {unknown} error @returns {never} */
function asTokenError(error) {
  throw error instanceof AskError ? new TokenError(error.message) : error;
}

/** @param {string | null} link */
function pagesIn(link) {
  const found = [...(link ?? "").matchAll(/<([^>]+)>; rel="(\w+)"/g)];
  return Object.fromEntries(found.map(([, address = "", relation = ""]) => [relation, address]));
}
