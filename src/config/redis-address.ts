import { percentDecoded } from "./values.ts";

/** `REDIS_URL` in its three forms: one server, Sentinels that know the server, a Cluster. Pure. */

/** Where a server listens. */
export interface Endpoint {
  host: string;
  port: number;
}

/** How we log in at every server that holds keys. */
interface Access {
  username?: string;
  password?: string;
  isEncrypted: boolean;
}

export type RedisAddress =
  | { of: "server"; url: string; endpoint: Endpoint; isEncrypted: boolean }
  | (Access & {
      of: "sentinel";
      /** The Sentinels; any of them answers. */
      endpoints: Endpoint[];
      /** The Sentinels' name for the server and its replicas. */
      master: string;
      database: number;
      sentinelUsername?: string;
      sentinelPassword?: string;
    })
  /** Some nodes of the Cluster; any of them names all the others. */
  | (Access & { of: "cluster"; endpoints: Endpoint[] });

/** The messages never repeat the address, since it may hold a password. */
const ADDRESS_FORMS =
  "is none of redis://HOST:PORT/DB, redis-sentinel://HOST:PORT,HOST:PORT/DB?master_name=NAME and redis-cluster://HOST:PORT,HOST:PORT (rediss… for TLS)";

const SEVERAL = /^(rediss?)-(sentinel|cluster):\/\/(?:([^@/?#]*)@)?([^@/?#]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/;
const REDIS_PORTS = { server: 6_379, sentinel: 26_379, cluster: 6_379 };

/** @throws Error that says which forms there are, or what is wrong with this one */
export function parseRedisAddress(text: string): RedisAddress {
  const url = /^rediss?:\/\//.test(text) ? URL.parse(text) : null;
  if (url)
    return {
      of: "server",
      url: text,
      endpoint: { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port || REDIS_PORTS.server) },
      isEncrypted: url.protocol === "rediss:",
    };
  const match = SEVERAL.exec(text);
  if (!match) throw new Error(ADDRESS_FORMS);
  const [, scheme, of, credentials, hosts = "", path = "", search] = match;
  const access: Access = { isEncrypted: scheme === "rediss", ...accessOf(credentials) };
  const query = new URLSearchParams(search);
  if (of === "cluster") {
    if (path !== "" && path !== "0") throw new Error("names a database: a Redis Cluster has number 0 alone");
    knownOnly(query, []);
    return { of: "cluster", ...access, endpoints: endpointsOf(hosts, REDIS_PORTS.cluster) };
  }
  knownOnly(query, ["master_name", "sentinel_username", "sentinel_password"]);
  const master = query.get("master_name");
  if (!master) throw new Error("names no server: add ?master_name=NAME, as the Sentinels call it");
  if (!/^\d*$/.test(path)) throw new Error("has a path that is not the number of a database");
  const [sentinelUsername, sentinelPassword] = [query.get("sentinel_username"), query.get("sentinel_password")];
  return {
    of: "sentinel",
    ...access,
    endpoints: endpointsOf(hosts, REDIS_PORTS.sentinel),
    master,
    database: Number(path),
    ...(sentinelUsername === null ? {} : { sentinelUsername }),
    ...(sentinelPassword === null ? {} : { sentinelPassword }),
  };
}

/** A reader of settings. */
export function redisUrl(text: string): string {
  parseRedisAddress(text);
  return text;
}

/** The hosts and ports that the address names. */
export function redisEndpoints(address: RedisAddress): Endpoint[] {
  return address.of === "server" ? [address.endpoint] : address.endpoints;
}

function knownOnly(query: URLSearchParams, known: readonly string[]): void {
  for (const name of query.keys()) {
    if (known.includes(name)) continue;
    const right = known.length === 0 ? "it takes none" : `it takes ${known.join(", ")}`;
    throw new Error(`has the parameter ${name}: ${right}`);
  }
}

function accessOf(credentials: string | undefined): Pick<Access, "username" | "password"> {
  if (credentials === undefined) return {};
  const at = credentials.indexOf(":");
  const username = percentDecoded(at < 0 ? credentials : credentials.slice(0, at));
  return {
    ...(username === "" ? {} : { username }),
    ...(at < 0 ? {} : { password: percentDecoded(credentials.slice(at + 1)) }),
  };
}

function endpointsOf(hosts: string, port: number): Endpoint[] {
  return hosts.split(",").map((one) => {
    const url = URL.parse(`redis://${one}`);
    if (!url?.hostname || url.pathname !== "") throw new Error("has a list of hosts that is not HOST:PORT,HOST:PORT");
    return { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port || port) };
  });
}
