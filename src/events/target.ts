import { sql } from "../../db/sql.ts";
import { seal, sealingKey, unseal } from "../config/sealing.ts";
import type { Context } from "../context.ts";
import { forgetCursors } from "./cursors.ts";

/** Whose events a target is sent: a repository, an account or everything, by upstream's id. */
export interface Scope {
  kind: "repository" | "organization" | "everything";
  /** 0 for everything. */
  id: number;
}

/** The settings that a target's owner chooses. */
export interface TargetConfig {
  url: string;
  contentType: "json" | "form";
  insecureSsl: boolean;
  /** Null: requests are not signed. */
  secret: string | null;
  /** `*` is all. */
  events: readonly string[];
  active: boolean;
  /** The mirror's API address, to put in place of upstream's; null: payloads stay as upstream sent them. */
  rewriteTo: string | null;
}

/** Where events are sent. */
export interface Target extends Omit<TargetConfig, "secret"> {
  id: number;
  scope: Scope;
  madeBy: "api" | "operator";
  /** The installation that each payload names, so that the App behind the target can get its token. Null: none. */
  installationId: number | null;
  /** The encrypted secret. Null: requests are not signed. */
  sealedSecret: Buffer | null;
  createdAt: Date;
  updatedAt: Date;
  /** To the minute; null: the target never accepted a request. */
  acceptedAt: Date | null;
  /** Since when the target is disabled, because it accepted nothing for long: events wait. */
  disabledAt: Date | null;
  problem: string | null;
}

interface TargetRow extends Omit<Target, "id" | "scope"> {
  id: string;
  scope: Scope["kind"];
  scopeId: string;
}

const TARGET_COLUMNS = sql`id, scope, scope_id as "scopeId", made_by as "madeBy", url, content_type as "contentType",
  insecure_ssl as "insecureSsl", secret as "sealedSecret", events, active, rewrite_to as "rewriteTo", installation_id::float8 as "installationId",
  created_at as "createdAt",
  updated_at as "updatedAt", accepted_at as "acceptedAt", disabled_at as "disabledAt", problem`;

function targetOf({ id, scope, scopeId, ...rest }: TargetRow): Target {
  return { ...rest, id: Number(id), scope: { kind: scope, id: Number(scopeId) } };
}

/** The targets of one scope, or all targets; the oldest first. */
export async function listTargets({ db }: Pick<Context, "db">, scope?: Scope): Promise<Target[]> {
  const within = scope ? sql`where scope = ${scope.kind} and scope_id = ${scope.id}` : sql``;
  const rows = await db.query<TargetRow>(sql`select ${TARGET_COLUMNS} from targets ${within} order by id`);
  return rows.map(targetOf);
}

/** `scope`: only if it is of that one. */
export async function findTarget({ db }: Pick<Context, "db">, id: number, scope?: Scope): Promise<Target | null> {
  const [row] = await db.prepared<TargetRow>(sql`select ${TARGET_COLUMNS} from targets where id = ${id}`);
  const target = row ? targetOf(row) : null;
  const isOf = !scope || (target?.scope.kind === scope.kind && target.scope.id === scope.id);
  return isOf ? target : null;
}

export async function createTarget(
  { db, clock, config }: Pick<Context, "db" | "clock" | "config">,
  {
    scope,
    madeBy,
    installationId = null,
    ...given
  }: TargetConfig & Pick<Target, "scope" | "madeBy"> & Partial<Pick<Target, "installationId">>,
): Promise<Target> {
  const now = clock.now();
  const [row] = await db.query<TargetRow>(sql`
    insert into targets (scope, scope_id, made_by, url, content_type, insecure_ssl, secret, events, active, rewrite_to,
        installation_id, created_at, updated_at)
      values (${scope.kind}, ${scope.id}, ${madeBy}, ${given.url}, ${given.contentType}, ${given.insecureSsl},
        ${sealSecret(config, given.secret)}, ${given.events}, ${given.active}, ${given.rewriteTo},
        ${installationId}, ${now}, ${now}) returning ${TARGET_COLUMNS}`);
  if (!row) throw new Error("A target was not stored");
  return targetOf(row);
}

/**
 * Changes only the given settings. A target that was disabled by failures gets the waiting events once it is enabled. A
 * target that its owner paused gets no events of the pause. Null: there is no such target.
 */
export async function changeTarget(
  { db, clock, config }: Pick<Context, "db" | "clock" | "config">,
  id: number,
  change: Partial<TargetConfig>,
): Promise<Target | null> {
  const { url = null, contentType = null, insecureSsl = null, events = null, active = null } = change;
  return await db.transaction(async (tx) => {
    // Cursors are locked before the target's row, as everywhere, so that no transactions deadlock.
    if (active === true && (await tx.count(sql`select from targets where id = ${id} and not active`)) > 0)
      await forgetCursors(tx, id);
    const secret = change.secret === undefined ? sql`secret` : sql`${sealSecret(config, change.secret)}::bytea`;
    const rewriteTo = change.rewriteTo === undefined ? sql`rewrite_to` : sql`${change.rewriteTo}`;
    const enabled = active === true;
    const [row] = await tx.query<TargetRow>(sql`update targets set url = coalesce(${url}, url),
        content_type = coalesce(${contentType}, content_type), insecure_ssl = coalesce(${insecureSsl}::boolean, insecure_ssl),
        secret = ${secret}, rewrite_to = ${rewriteTo}, events = coalesce(${events}::text[], events), active = coalesce(${active}::boolean, active),
        disabled_at = case when ${enabled} then null else disabled_at end,
        problem = case when ${enabled} then null else problem end, updated_at = ${clock.now()}
      where id = ${id} returning ${TARGET_COLUMNS}`);
    return row ? targetOf(row) : null;
  });
}

/** Removes a target, with the record of what was sent to it. False: there is no such target. */
export async function removeTarget({ db }: Pick<Context, "db">, id: number): Promise<boolean> {
  // From now on no event is written for the target.
  await db.query(sql`update targets set active = false where id = ${id}`);
  return await db.transaction(async (tx) => {
    // Cursors come first, since a turn that notes a request locks in this order.
    await forgetCursors(tx, id);
    await tx.query(sql`with locked as materialized (select id from target_asks where target_id = ${id} order by id for update)
      delete from target_asks where id in (select id from locked)`);
    return (await tx.count(sql`delete from targets where id = ${id}`)) > 0;
  });
}

/** A secret cannot be read with any WEBHOOK_SECRET that is set. */
export class SealedSecretError extends Error {
  override name = "SealedSecretError";
}

const SECRETS_PURPOSE = "tain targets";

function sealSecret({ webhookSecrets }: Context["config"], secret: string | null): Buffer | null {
  return secret === null ? null : seal(sealingKey(webhookSecrets[0] ?? "", SECRETS_PURPOSE), SECRETS_PURPOSE, secret);
}

/** The secret that signs requests to a target. */
export interface TargetSecret {
  /** Null: they are not signed. */
  value: string | null;
  /** Whether an older WEBHOOK_SECRET sealed it. */
  isOutdated: boolean;
}

/** Only reads. @throws SealedSecretError */
export function secretOf(
  { config }: Pick<Context, "config">,
  { sealedSecret }: Pick<Target, "sealedSecret">,
): TargetSecret {
  if (sealedSecret === null) return { value: null, isOutdated: false };
  for (const [at, webhookSecret] of config.webhookSecrets.entries()) {
    const value = tryUnseal(webhookSecret, sealedSecret);
    if (value !== null) return { value, isOutdated: at > 0 };
  }
  throw new SealedSecretError(
    "Its secret was encrypted with a WEBHOOK_SECRET that is no longer set: set that one beside the present one, or give the target its secret again",
  );
}

/** Seals an outdated secret with the present WEBHOOK_SECRET, so that the older one can be dropped. */
export async function sealAnew(
  { db, config }: Pick<Context, "db" | "config">,
  { id, sealedSecret }: Pick<Target, "id" | "sealedSecret">,
  { value }: TargetSecret,
): Promise<void> {
  await db.query(
    sql`update targets set secret = ${sealSecret(config, value)} where id = ${id} and secret = ${sealedSecret}`,
  );
}

function tryUnseal(webhookSecret: string, sealedSecret: Buffer): string | null {
  try {
    return unseal(sealingKey(webhookSecret, SECRETS_PURPOSE), SECRETS_PURPOSE, sealedSecret);
  } catch {
    // Another key sealed it: `secretOf` tries the next one, and throws when none is left.
    return null;
  }
}
