import { type Transaction, together } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { HookHolder } from "../../config/hook-secrets.ts";
import type { Context } from "../../context.ts";
import { objectOf, wholeOf } from "../../json.ts";
import { isOfInstallations, ownerOf } from "../events/events.ts";
import type { Parsed } from "../events/read.ts";

/** What the mirror knows of the things that a batch of deliveries names. None of it comes from a payload. */
export interface KnownHolders {
  /** The owners of mirrored repositories, by the repositories' ids. */
  owners: ReadonlyMap<number, number | null>;
  /** The account of the installation that covers a repository, by the repository's id. */
  covered: ReadonlyMap<number, number | null>;
  /** The accounts of installations, by the installations' ids. */
  accounts: ReadonlyMap<number, number | null>;
}

/**
 * Looks up what the secrets of these deliveries' signers cover. Only an App's deliveries cost a question.
 * @param owners the owners of the mirrored repositories that the deliveries name
 */
export async function findHolders(
  tx: Transaction,
  parsed: readonly Parsed[],
  owners: KnownHolders["owners"],
): Promise<KnownHolders> {
  const ofApps = parsed.filter(({ taken }) => taken.signer?.type === "integration");
  if (ofApps.length === 0) return { owners, covered: new Map(), accounts: new Map() };
  const repositoryIds = ofApps.flatMap((one) => repositoryIdOf(one) ?? []);
  const installationIds = ofApps.flatMap((one) => installationIdOf(one) ?? []);
  const [covered, accounts] = await together([
    tx.prepared<{ id: number; account: number | null }>(sql`
      select c.repository_id as id, i.account_id as account
        from installation_repositories c join installations i on i.id = c.installation_id
        where c.page > 0 and c.repository_id = any(${sql.array(repositoryIds, "bigint")}::bigint[])`),
    tx.prepared<{ id: number; account: number | null }>(sql`
      select id, account_id as account from installations
        where id = any(${sql.array(installationIds, "bigint")}::bigint[])`),
  ]);
  const byId = (rows: typeof covered) => new Map(rows.map(({ id, account }) => [id, account]));
  return { owners, covered: byId(covered), accounts: byId(accounts) };
}

/** The repository that a delivery is about: the signature was checked for the one that the receiver read. */
export function repositoryIdOf({ taken, repository }: Pick<Parsed, "taken" | "repository">): number | null {
  return taken.repositoryId ?? repository?.id ?? null;
}

function installationIdOf({ payload }: Pick<Parsed, "payload">): number | null {
  return wholeOf(objectOf(payload.installation).id);
}

/**
 * Why a delivery counts for nothing: the secret that signed it does not cover what it is about, as far as the mirror
 * knows. Null: it counts. Pure.
 */
export function refusalOfSigner(
  config: Pick<Context["config"], "appId">,
  parsed: Parsed,
  known: KnownHolders,
): string | null {
  const { signer } = parsed.taken;
  if (signer === null) return null;
  const repositoryId = repositoryIdOf(parsed);
  switch (signer.type) {
    case "repository":
      return repositoryId === null || repositoryId === signer.id ? null : "it is of another repository than its signer";
    case "organization":
      return repositoryId === null || known.owners.get(repositoryId) === signer.id
        ? null
        : "upstream did not show its repository as one of the organisation that signed it";
    case "integration":
      return refusalOfApp(config, parsed, { known, signer, repositoryId });
    default:
      return signer.type satisfies never;
  }
}

function refusalOfApp(
  { appId }: Pick<Context["config"], "appId">,
  parsed: Parsed,
  { known, signer, repositoryId }: { known: KnownHolders; signer: HookHolder; repositoryId: number | null },
): string | null {
  // APP_ID may also be the App's client id, which does not tell its number.
  const isOurs = appId !== null && (!/^\d+$/.test(appId) || Number(appId) === signer.id);
  if (!isOurs) return "it is of a GitHub App that is not the mirror's";
  // What an installation covers is read from upstream. Its events name no single repository.
  if (isOfInstallations(parsed.taken.event) && repositoryId === null) return null;
  if (repositoryId !== null)
    return known.covered.has(repositoryId) ? null : "the GitHub App is not installed on its repository";
  const account = known.accounts.get(installationIdOf(parsed) ?? 0);
  const { organization } = parsed.payload;
  return account !== undefined && (organization === undefined || objectOf(organization).id === account)
    ? null
    : "the GitHub App is not installed on its organisation";
}

/**
 * The account whose targets hear of a delivery. It comes from who signed, and never from the payload's word. Null: none.
 * WEBHOOK_SECRET itself signs for all, so its payloads are believed. Pure.
 */
export function accountOf(parsed: Parsed, known: KnownHolders): number | null {
  const { signer } = parsed.taken;
  if (signer === null) return ownerOf(parsed.payload);
  const repositoryId = repositoryIdOf(parsed);
  switch (signer.type) {
    case "repository":
      return known.owners.get(signer.id) ?? null;
    case "organization":
      return signer.id;
    case "integration":
      return repositoryId === null
        ? (known.accounts.get(installationIdOf(parsed) ?? 0) ?? null)
        : (known.owners.get(repositoryId) ?? known.covered.get(repositoryId) ?? null);
    default:
      return signer.type satisfies never;
  }
}
