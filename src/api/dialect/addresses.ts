import type { Config } from "../../config.ts";
import { ApiFault } from "./fault.ts";

/** Where enterprise-style clients reach the same API. */
export const enterprisePrefix = "/api/v3";

/**
 * The API's address as the caller wrote it, without a trailing slash: it stands in bodies, `Link` and `Location`.
 * @throws ApiFault 400 when the request's Host is no host
 */
export function apiAddress(
  { publicUrl }: Pick<Config, "publicUrl">,
  request: { protocol: string; host: string | undefined; isEnterprise: boolean },
): string {
  const prefix = request.isEnterprise ? enterprisePrefix : "";
  if (publicUrl) return publicUrl + prefix;
  const host = request.host ?? "";
  if (!/^(\[[\da-f:.]+\]|[\w.-]+)(:\d{1,5})?$/i.test(host)) throw new ApiFault(400, "Bad Request");
  return `${request.protocol}://${host}${prefix}`;
}
