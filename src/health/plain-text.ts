import { parseRedisAddress, redisEndpoints } from "../config/redis-address.ts";
import type { Config } from "../config.ts";
import { AddressList } from "../http/addresses.ts";

const LOOPBACK = new AddressList(["loopback"]);
const NEAR = new AddressList(["loopback", "linklocal", "uniquelocal"]);

/**
 * Warnings about unencrypted connections that others on the way can read. This machine and private networks need none.
 * Pure.
 */
export function plainTextWarnings({
  upstreamUrl,
  databaseUrl,
  databaseDirectUrl,
  databaseReplicaUrls,
  redisUrl,
}: Pick<Config, "upstreamUrl" | "databaseUrl" | "databaseDirectUrl" | "databaseReplicaUrls" | "redisUrl">): string[] {
  const warnings: string[] = [];
  const upstream = new URL(upstreamUrl);
  const redis = parseRedisAddress(redisUrl);
  if (upstream.protocol === "http:" && !isUrlListed(LOOPBACK, upstream))
    warnings.push("UPSTREAM_URL begins with http://: tokens travel there in plain text; use https://");
  const databases = {
    DATABASE_URL: [databaseUrl],
    DATABASE_DIRECT_URL: databaseDirectUrl === null ? [] : [databaseDirectUrl],
    DATABASE_REPLICA_URLS: databaseReplicaUrls,
  };
  for (const [name, addresses] of Object.entries(databases)) {
    if (addresses.map((address) => new URL(address)).some((one) => !asksForTls(one) && !isUrlListed(NEAR, one)))
      warnings.push(`${name} asks for no TLS: the mirror travels there in plain text; add sslmode=verify-full`);
  }
  if (!redis.isEncrypted && redisEndpoints(redis).some(({ host }) => !isHostListed(NEAR, host)))
    warnings.push("REDIS_URL asks for no TLS: its password travels there in plain text; let it begin with rediss");
  return warnings;
}

function asksForTls({ searchParams }: URL): boolean {
  const mode = searchParams.get("sslmode");
  return mode === null ? /^(true|1)$/.test(searchParams.get("ssl") ?? "") : !/^(disable|allow|prefer)$/.test(mode);
}

function isUrlListed(list: AddressList, { hostname }: URL): boolean {
  return isHostListed(list, hostname.replace(/^\[|\]$/g, ""));
}

/**
 * Whether a host is on this machine or a private network. A name without a dot is private, such as a container's.
 * Without a host, the address is a socket.
 */
function isHostListed(list: AddressList, host: string): boolean {
  if (host === "" || host === "localhost" || host.endsWith(".localhost")) return true;
  return list.includes(host) || (list === NEAR && !/[.:]/.test(host));
}
