import { isContentType } from "../../http/body.ts";
import { HttpError } from "../../http/errors.ts";
import type { Exchange } from "../../http/exchange.ts";
import { isRead } from "../call.ts";

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
