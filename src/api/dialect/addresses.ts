import type { Config } from "../../config.ts";
import type { Exchange } from "../../http/exchange.ts";
import { ApiFault } from "./fault.ts";

/** Where enterprise-style clients reach the same API. */
export const ENTERPRISE_PREFIX = "/api/v3";

/** The path below the API's address. */
export function pathInApi({ path }: Pick<Exchange, "path">): { path: string; isEnterprise: boolean } {
  const isEnterprise = path === ENTERPRISE_PREFIX || path.startsWith(`${ENTERPRISE_PREFIX}/`);
  return { path: isEnterprise ? path.slice(ENTERPRISE_PREFIX.length) || "/" : path, isEnterprise };
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
