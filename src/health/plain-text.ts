import type { Config } from "../config.ts";
import { AddressList } from "../http/addresses.ts";

const LOOPBACK = new AddressList(["loopback"]);
const NEAR = new AddressList(["loopback", "linklocal", "uniquelocal"]);

/** What is sent where others on the way can read it, in words; nothing for this machine and private networks. Pure. */
export function plainTextWarnings({
  upstreamUrl,
  databaseUrl,
  redisUrl,
}: Pick<Config, "upstreamUrl" | "databaseUrl" | "redisUrl">): string[] {
  const warnings: string[] = [];
  const [upstream, database, redis] = [upstreamUrl, databaseUrl, redisUrl].map((url) => new URL(url));
  if (upstream?.protocol === "http:" && !isOf(LOOPBACK, upstream))
    warnings.push("UPSTREAM_URL begins with http://: tokens travel there in plain text; use https://");
  if (database && !asksForTls(database) && !isOf(NEAR, database))
    warnings.push("DATABASE_URL asks for no TLS: the mirror travels there in plain text; add sslmode=verify-full");
  if (redis?.protocol === "redis:" && !isOf(NEAR, redis))
    warnings.push("REDIS_URL begins with redis://: its password travels there in plain text; use rediss://");
  return warnings;
}

function asksForTls({ searchParams }: URL): boolean {
  const mode = searchParams.get("sslmode");
  return mode === null ? /^(true|1)$/.test(searchParams.get("ssl") ?? "") : !/^(disable|allow|prefer)$/.test(mode);
}

/** A name without a dot is one of a private network, such as a container's. Without a host it is a socket. */
function isOf(list: AddressList, { hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (host === "" || host === "localhost" || host.endsWith(".localhost")) return true;
  return list.includes(host) || (list === NEAR && !/[.:]/.test(host));
}
