import { createHash, timingSafeEqual } from "node:crypto";
import { AddressList } from "../http/addresses.ts";
import type { Exchange } from "../http/exchange.ts";

/** Whether the caller sits at this machine, or holds the operator's token. */
export function isOperator(exchange: Pick<Exchange, "headers" | "peer">, operatorToken: string | null): boolean {
  const [, given] = /^bearer +(\S+)$/i.exec(exchange.headers.authorization ?? "") ?? [];
  if (given !== undefined && operatorToken !== null && isSame(given, operatorToken)) return true;
  return isDirectLoopback(exchange);
}

/** What proxies add. A request that carries one has come from elsewhere, though the proxy sits at this machine. */
const FORWARDING_HEADERS = [
  "forwarded",
  "via",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-forwarded-port",
  "x-forwarded-server",
  "x-real-ip",
  "x-client-ip",
  "x-original-host",
  "x-envoy-external-address",
  "true-client-ip",
  "cf-connecting-ip",
  "fly-client-ip",
];

const LOOPBACK = new AddressList(["loopback"]);

function isDirectLoopback({ headers, peer }: Pick<Exchange, "headers" | "peer">): boolean {
  if (!LOOPBACK.includes(peer)) return false;
  if (FORWARDING_HEADERS.some((name) => headers[name] !== undefined)) return false;
  // A web page can make a browser at this machine ask us under a public name (DNS rebinding). A proxy without
  // forwarding headers passes its public name on, too. Callers at this machine need neither.
  const host = URL.parse(`http://${headers.host ?? ""}`)?.hostname ?? "";
  const name = host.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  return name === "localhost" || name.endsWith(".localhost") || LOOPBACK.includes(name);
}

/** In constant time, whatever the lengths. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
