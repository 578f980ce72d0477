import type { Queries } from "../../../db/database.ts";
import type { Config } from "../../config.ts";
import { plainTextWarnings } from "../../health/plain-text.ts";
import { findOrigin, SIMULATOR } from "../../sync/following/origin.ts";
import { type Finding, Findings } from "./finding.ts";

/** Findings about the settings, and about their database's origin. @param db null: the database cannot be asked */
export async function examineSettings({ config, db }: { config: Config; db: Queries | null }): Promise<Finding[]> {
  return settingsFindings(config, db && (await findOrigin(db)));
}

/** Pure. @param origin what the database mirrors; null: nothing yet, or it is not known */
function settingsFindings(
  config: Pick<
    Config,
    | "upstreamUrl"
    | "databaseUrl"
    | "databaseDirectUrl"
    | "databaseReplicaUrls"
    | "redisUrl"
    | "publicUrl"
    | "trustedProxies"
    | "rateLimitAnonymous"
  >,
  origin: string | null,
): Finding[] {
  const { upstreamUrl, publicUrl, trustedProxies, rateLimitAnonymous } = config;
  const found = new Findings("settings");
  if (origin !== null && origin !== SIMULATOR && origin !== upstreamUrl)
    found.problem(
      "origin",
      `The database mirrors ${origin}, and UPSTREAM_URL is ${upstreamUrl}: nothing starts with it`,
      "Set DATABASE_URL to another database, or UPSTREAM_URL to what this one mirrors",
    );
  // A web process speaks no TLS itself.
  if (publicUrl?.startsWith("https:") && trustedProxies.length === 0 && rateLimitAnonymous > 0)
    found.warning(
      "proxy",
      "PUBLIC_URL begins with https://, so a proxy stands before Tain, and TRUSTED_PROXIES names none: all callers without a token look like one",
      "Name the proxy's address in TRUSTED_PROXIES",
    );
  for (const warning of plainTextWarnings(config)) {
    const at = warning.lastIndexOf("; ");
    const todo = warning.slice(at + 2);
    found.warning("plain-text", warning.slice(0, at), `${todo.slice(0, 1).toUpperCase()}${todo.slice(1)}`);
  }
  return found.all;
}
