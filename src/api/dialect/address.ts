import type { Config } from "../../config.ts";
import { decoded, type Exchange } from "../../http/exchange.ts";
import type { RepositoryName } from "../../mirror/read/repositories.ts";
import { ApiFault } from "./fault.ts";

/** The prefix under which enterprise-style clients reach the same API. */
export const ENTERPRISE_PREFIX = "/api/v3";

/** The path below the API's address. */
export function pathInApi({ path }: Pick<Exchange, "path">): { path: string; isEnterprise: boolean } {
  const isEnterprise = path === ENTERPRISE_PREFIX || path.startsWith(`${ENTERPRISE_PREFIX}/`);
  return { path: isEnterprise ? path.slice(ENTERPRISE_PREFIX.length) || "/" : path, isEnterprise };
}

/**
 * The repository that a path in the API names, by its name or its id, and the rest of the path as it was sent. Null: it
 * names none. Pure.
 */
export function repositoryIn(path: string): (RepositoryName & { rest: string }) | null {
  const [, name, id, rest = ""] = /^\/(?:repos\/([^/]+\/[^/]+)|repositories\/(\d{1,15}))(\/.*)?$/.exec(path) ?? [];
  if (id !== undefined) return { fullName: null, id: Number(id), rest };
  const fullName = name === undefined ? null : decoded(name);
  return fullName === null ? null : { fullName, id: null, rest };
}

/**
 * The API's address as the caller wrote it, without a trailing slash: it stands in bodies, `Link` and `Location`.
 * @throws ApiFault 400 when the request's Host is no host
 */
export function apiAddress(
  { publicUrl }: Pick<Config, "publicUrl">,
  exchange: Pick<Exchange, "protocol" | "host">,
  { isEnterprise }: { isEnterprise: boolean },
): string {
  const prefix = isEnterprise ? ENTERPRISE_PREFIX : "";
  if (publicUrl) return publicUrl + prefix;
  const { host, protocol } = exchange;
  if (!/^(\[[\da-f:.]+\]|[\w.-]+)(:\d{1,5})?$/i.test(host)) throw new ApiFault(400, "Bad Request");
  return `${protocol}://${host}${prefix}`;
}
