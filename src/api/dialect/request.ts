import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { isContentType } from "../../http/content-type.ts";
import { HttpError } from "../../http/errors.ts";
import { type Exchange, isRead } from "../../http/exchange.ts";

/** The largest body of a request. GitHub takes bodies of 65,536 characters, and a review may hold several. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024;

/**
 * The largest body of a GraphQL request. A text of 65,536 characters, each escaped as two surrogates, fills three
 * quarters of it. A MiB of JSON is parsed in 15 ms.
 */
const MAX_GRAPHQL_BYTES = 1024 * 1024;

/**
 * The text of the request's body, as it was sent; a read has none.
 * @throws HttpError 413 for a body that is too large, 415 for a Content-Type that cannot be read
 */
export async function bodyText(exchange: Exchange, maxBytes = MAX_BODY_BYTES): Promise<string> {
  if (isRead(exchange.method)) return "";
  const type = exchange.headers["content-type"];
  if (type !== undefined && !isContentType(type)) throw new HttpError(415, "Bad Request");
  return (await exchange.body(maxBytes)).toString();
}

/** The text of a GraphQL request's body. @throws as `bodyText` */
export function graphqlText(exchange: Exchange): Promise<string> {
  return bodyText(exchange, MAX_GRAPHQL_BYTES);
}

/** Requests share all but the last digits. Drawing each id anew would take longer than the rest of a 304. */
const SERIES_LENGTH = 0x10000;

/** The digits of each byte. */
const BYTES = Array.from({ length: 0x100 }, (_, byte) => byte.toString(16).toUpperCase().padStart(2, "0"));

/** Names requests, in the service's form. */
export class RequestIds {
  #series = "";
  #last = SERIES_LENGTH;

  next(): string {
    this.#last += 1;
    if (this.#last >= SERIES_LENGTH) {
      const drawn = randomBytes(14).toString("hex").toUpperCase();
      this.#series = `${drawn.slice(0, 4)}:${drawn.slice(4, 10)}:${drawn.slice(10, 16)}:${drawn.slice(16, 24)}:${drawn.slice(24)}`;
      this.#last = 0;
    }
    return this.#series + BYTES[this.#last >> 8] + BYTES[this.#last & 0xff];
  }
}

/**
 * Whether a read is to show upstream's present state. `fetch` adds this header by itself to each request with a
 * validator: there it means nothing.
 */
export function wantsNoCache(headers: IncomingHttpHeaders): boolean {
  if (headers["cache-control"] === undefined) return false;
  if (headers["if-none-match"] !== undefined || headers["if-modified-since"] !== undefined) return false;
  return headers["cache-control"].split(",").some((part) => part.trim().toLowerCase() === "no-cache");
}

/** Whether a request asks for upstream's present state. */
export function asksFresh(query: URLSearchParams, headers: IncomingHttpHeaders): boolean {
  return query.get("fresh") === "true" || wantsNoCache(headers);
}
