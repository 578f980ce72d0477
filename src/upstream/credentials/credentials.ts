import { createHash } from "node:crypto";
import { among } from "../../../db/sql.ts";
import { tokenOwners } from "../../schema.ts";
import type { Stores } from "../../stores.ts";
import { type Installation, installationCredential, loadInstallations } from "./installations.ts";

/** The App itself, which signs its requests with its key. It may only ask about its installations and its webhook. */
export const APP = "app";

/** A token or an installation that we use at upstream. Only its name is ever stored, shown or logged. */
export interface KnownCredential {
  /** A token's fingerprint, or `installation-ID`: the same however often the installation's token is renewed. */
  id: string;
  /** The name that people see. */
  name: string;
  /** The quota that it spends: the tokens of one user share theirs. */
  ledger: string;
  /** Null for a token. */
  installation: Installation | null;
  /** Why the credential cannot be used, and what to do; null: no problem is known. */
  problem: string | null;
}

/** The tokens of `UPSTREAM_TOKEN` and the App's installations, in this order. */
export async function loadCredentials(ctx: Pick<Stores, "config" | "db">): Promise<KnownCredential[]> {
  const tokens = [...parseTokens(ctx.config.upstreamTokens).keys()];
  const owners = await loadOwners(ctx, tokens);
  const installations = ctx.config.appId === null ? [] : await loadInstallations(ctx.db);
  return [
    ...tokens.map((id): KnownCredential => {
      const owner = owners.get(id);
      const name = owner ? `token ${id} of ${owner.login}` : `token ${id}`;
      return { id, name, ledger: owner?.ledger ?? id, installation: null, problem: null };
    }),
    ...installations.map((installation): KnownCredential => {
      const id = installationCredential(installation.id);
      const name = `installation on ${installation.account}`;
      return { id, name, ledger: id, installation, problem: suspension(installation) };
    }),
  ];
}

function suspension({ account, suspendedAt }: Installation): string | null {
  return (
    suspendedAt &&
    `${account} has suspended the App's installation: an owner of ${account} can unsuspend it in its settings, under GitHub Apps`
  );
}

/** Each token's known owner, by fingerprint. A single token needs none, since no other shares its quota. */
async function loadOwners(
  { db }: Pick<Stores, "db">,
  fingerprints: readonly string[],
): Promise<Map<string, { ledger: string; login: string }>> {
  if (fingerprints.length < 2) return new Map();
  const rows = await db
    .select()
    .from(tokenOwners)
    .where(among(tokenOwners.fingerprint, fingerprints))
    .orderBy(tokenOwners.fingerprint);
  return new Map(rows.map((row) => [row.fingerprint, { ledger: `user-${row.userId}`, login: row.login }]));
}

/** The tokens of `UPSTREAM_TOKEN`, each once, by fingerprint. Pure. */
export function parseTokens(tokens: readonly string[]): ReadonlyMap<string, string> {
  return new Map(tokens.map((token) => [fingerprint(token), token]));
}

/** Names a token without revealing it: the first 16 hex digits of its SHA-256. */
export function fingerprint(token: string): string {
  return createHash("sha256").update(token).digest("hex").slice(0, 16);
}
