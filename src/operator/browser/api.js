// What the page asks its server.
import { learnClock } from "./words.js";

/** The server's answer was no answer. The message is for a person. */
export class AskError extends Error {
  /**
   * @param {string} message
   * @param {import("./health.js").Health | null} [health] as the server told it
   */
  constructor(message, health = null) {
    super(message);
    this.health = health;
  }
}

/** @type {Map<string, { tag: string, body: any }>} */
const known = new Map();
const MOST_KNOWN = 40;

/**
 * A view, as it is now. An unchanged one costs no body, and is the same object as before.
 * @param {string} view
 * @param {Record<string, string>} [asked]
 * @returns {Promise<any>}
 */
export async function load(view, asked = {}) {
  const query = new URLSearchParams(asked).toString();
  const path = `/-/operator/${view}${query === "" ? "" : `?${query}`}`;
  const before = known.get(path);
  const response = await send(path, { headers: before ? { "If-None-Match": before.tag } : {} });
  if (response.status === 304 && before) return before.body;
  const body = await bodyOf(response);
  const tag = response.headers.get("ETag");
  known.delete(path);
  if (tag) known.set(path, { tag, body });
  for (const oldest of known.keys()) if (known.size > MOST_KNOWN) known.delete(oldest);
  return body;
}

/**
 * A changing request.
 * @param {string} path
 * @param {object} body
 * @returns {Promise<any>}
 */
export async function post(path, body) {
  const word = document.querySelector('meta[name="word"]')?.getAttribute("content") ?? "";
  const headers = { "Content-Type": "application/json", "X-Tain-Session-Word": word };
  return await bodyOf(await send(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/** @param {string} path */
export async function look(path) {
  return await bodyOf(await send(path, {}));
}

/**
 * What this host answers.
 * @param {string} path
 * @param {RequestInit} options
 * @param {string} [then] what is told if there is no answer
 */
export async function reach(path, options, then = "Try again in a moment.") {
  let response;
  try {
    // The page compares tags itself: the browser's cache would hide a 304.
    response = await fetch(path, { ...options, cache: "no-store", signal: AbortSignal.timeout(20_000) });
  } catch {
    throw new AskError(`The web process does not answer. ${then}`);
  }
  learnClock(response.headers.get("Date"));
  return response;
}

/**
 * @param {string} path
 * @param {RequestInit} options
 */
async function send(path, options) {
  const response = await reach(path, options, "The page tries again by itself.");
  // The session is over: the server shows where to sign in.
  if (response.status === 401) location.reload();
  return response;
}

/**
 * The JSON of an answer. Throws an AskError with the message of a refusal.
 * @param {Response} response
 */
export async function bodyOf(response) {
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new AskError(body?.message ?? `The web process answers ${response.status}`, body?.health);
  return body;
}
