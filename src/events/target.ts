import { and, eq, gt, type InferSelectModel, isNotNull } from "drizzle-orm";
import type { Queries, Transaction } from "../../db/database.ts";
import type { TargetContentType, TargetFormat, TargetMadeBy, TargetScope, TokenOf } from "../../db/schema/states.ts";
import { type SQL, sql } from "../../db/sql.ts";
import { takeTurns } from "../../db/turns.ts";
import { openAny, sealNewest } from "../config/sealing.ts";
import type { Context } from "../context.ts";
import { targets } from "../schema.ts";
import { forgetCursors } from "./cursors.ts";

/** Whose events a target is sent: a repository, an account or everything, by upstream's id. */
export interface Scope {
  kind: TargetScope;
  /** 0 for everything. */
  id: number;
}

/** The settings that a target's owner chooses. */
export interface TargetConfig {
  url: string;
  contentType: TargetContentType;
  insecureSsl: boolean;
  /** Null: requests are not signed. */
  secret: string | null;
  /** `*` is all. */
  events: readonly string[];
  active: boolean;
  /** The mirror's API address, to put in place of upstream's; null: payloads stay as upstream sent them. */
  rewriteTo: string | null;
}

/** How events are told to a target, and which. An operator alone chooses this. */
export interface Telling {
  /** Null: as upstream sent them. */
  format: TargetFormat | null;
  /** Only events with one of these actions; null: all. */
  actions: readonly string[] | null;
  /** Only events about something with one of these labels, in any case; null: all. */
  labels: readonly string[] | null;
}

/** Who registered a target, or resumed it last. */
export interface Maker {
  userId: number;
  /** Whose token the caller showed. */
  tokenOf: TokenOf;
  /** Names the token without revealing it. */
  token: string;
}

/** Where events are sent. */
export interface Target extends Omit<TargetConfig, "secret">, Telling {
  id: number;
  scope: Scope;
  madeBy: TargetMadeBy;
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
  /** Null: an operator made it, or a process that did not note who did. */
  maker: Maker | null;
  /** Why the mirror has paused the target, in words. What happens meanwhile is not sent. Null: it has not. */
  pausedWhy: string | null;
}

function targetOf({
  scope: kind,
  scopeId,
  secret,
  makerId,
  tokenOf,
  token,
  ...rest
}: InferSelectModel<typeof targets>): Target {
  const maker = makerId === null || tokenOf === null || token === null ? null : { userId: makerId, tokenOf, token };
  return { ...rest, scope: { kind, id: scopeId }, sealedSecret: secret, maker };
}

/** The targets of one scope, or all targets; the oldest first. */
export async function listTargets({ db }: { db: Queries }, scope?: Scope): Promise<Target[]> {
  const isWithin = scope && and(eq(targets.scope, scope.kind), eq(targets.scopeId, scope.id));
  const rows = await db.select().from(targets).where(isWithin).orderBy(targets.id);
  return rows.map(targetOf);
}

/** `scope`: only if it is of that one. */
export async function findTarget({ db }: { db: Queries }, id: number, scope?: Scope): Promise<Target | null> {
  const [row] = await db.select().from(targets).where(eq(targets.id, id)).prepare().execute();
  const target = row ? targetOf(row) : null;
  const isOf = !scope || (target?.scope.kind === scope.kind && target.scope.id === scope.id);
  return isOf ? target : null;
}

/** Judges a change by the other targets of the scope. It may throw. */
export type RequireFit = (others: readonly Target[]) => void;

/** Two callers who add at once would each count the other's target as absent, so they take turns. */
async function judged(tx: Transaction, scope: Scope, except: number | null, require: RequireFit): Promise<void> {
  await takeTurns(tx, "targets", [`${scope.kind} ${scope.id}`]);
  require((await listTargets({ db: tx }, scope)).filter(({ id }) => id !== except));
}

interface NewTarget extends TargetConfig, Partial<Telling>, Pick<Target, "scope" | "madeBy"> {
  installationId?: Target["installationId"];
  maker?: Target["maker"];
}

/** @throws what `require` does */
export async function createTarget(
  { db, clock, config }: Pick<Context, "db" | "clock" | "config">,
  { scope, maker = null, secret, events, actions = null, labels = null, ...given }: NewTarget,
  require: RequireFit | null = null,
): Promise<Target> {
  const now = clock.now();
  return await db.transaction(async (tx) => {
    if (require) await judged(tx, scope, null, require);
    const [row] = await tx
      .insert(targets)
      .values({
        ...given,
        scope: scope.kind,
        scopeId: scope.id,
        secret: sealSecret(config, secret),
        events: [...events],
        actions: actions && [...actions],
        labels: labels && [...labels],
        ...makerColumns(maker),
        createdAt: now,
        updatedAt: now,
      })
      .returning();
    if (!row) throw new Error("A target was not stored");
    return targetOf(row);
  });
}

function makerColumns(maker: Target["maker"]) {
  return { makerId: maker?.userId ?? null, tokenOf: maker?.tokenOf ?? null, token: maker?.token ?? null };
}

interface Changing {
  /** Who answers for the target if this resumes it. Null: an operator, who is asked for no right. */
  maker: Target["maker"];
  require: RequireFit | null;
}

/**
 * Changes only the given settings. A target that was disabled by failures gets the waiting events once it is enabled. A
 * target that its owner or the mirror paused gets no events of the pause. Null: there is no such target.
 * @throws what `require` does
 */
export async function changeTarget(
  { db, clock, config }: Pick<Context, "db" | "clock" | "config">,
  id: number,
  change: Partial<TargetConfig>,
  { maker, require }: Changing = { maker: null, require: null },
): Promise<Target | null> {
  const { secret, events, ...given } = change;
  return await db.transaction(async (tx) => {
    const before = await findTarget({ db: tx }, id);
    if (!before) return null;
    if (require) await judged(tx, before.scope, id, require);
    // Cursors are locked before the target's row, as everywhere, so that no transactions deadlock.
    const resumes =
      given.active === true && (await tx.count(sql`select from targets where id = ${id} and not active`)) > 0;
    if (resumes) await forgetCursors(tx, id);
    const [row] = await tx
      .update(targets)
      .set({
        ...given,
        ...(events && { events: [...events] }),
        ...(secret !== undefined && { secret: sealSecret(config, secret) }),
        ...(given.active === true && { disabledAt: null, problem: null }),
        ...(resumes && { ...makerColumns(maker), pausedWhy: null }),
        updatedAt: clock.now(),
      })
      .where(eq(targets.id, id))
      .returning();
    return row ? targetOf(row) : null;
  });
}

/** Pauses targets whose maker may register them no more. Answers the paused ones. */
export async function pauseLapsed({ db, clock, log }: Pick<Context, "db" | "clock" | "log">): Promise<number[]> {
  return await paused({ log }, db, sql`select target_id, why from lapsed_targets(${clock.now()})`);
}

/** Pauses targets that a token of upstream's made, for a reason in words. */
export async function pauseTargets(
  { db, log }: Pick<Context, "db" | "log">,
  ids: readonly number[],
  why: string,
): Promise<number[]> {
  if (ids.length === 0) return [];
  return await paused(
    { log },
    db,
    sql`select id as target_id, ${why}::text as why from unnest(${ids}::bigint[]) as t(id)`,
  );
}

async function paused({ log }: Pick<Context, "log">, db: Queries, lapsed: SQL): Promise<number[]> {
  const rows = await db.query<{ id: number; why: string }>(sql`
    update targets t set active = false, paused_why = l.why from (${lapsed}) l
      where t.id = l.target_id and t.active returning t.id, l.why`);
  for (const { id: targetId, why } of rows) log.warn({ targetId, why }, "A target is paused");
  return rows.map(({ id }) => id);
}

/** The active targets that a token of upstream's made. */
export async function madeWith({ db }: { db: Queries }, token: string): Promise<{ id: number; scope: Scope }[]> {
  return await db
    .select({ id: targets.id, scope: { kind: targets.scope, id: targets.scopeId } })
    .from(targets)
    .where(and(eq(targets.token, token), eq(targets.tokenOf, "upstream"), targets.active))
    .prepare()
    .execute();
}

/** Removes a target, with the record of what was sent to it. False: there is no such target. */
export async function removeTarget({ db }: Pick<Context, "db">, id: number): Promise<boolean> {
  // From now on no event is written for the target.
  await db.update(targets).set({ active: false }).where(eq(targets.id, id));
  return await db.transaction(async (tx) => {
    // Cursors come first, since a turn that notes a request locks in this order.
    await forgetCursors(tx, id);
    await tx.query(sql`with locked as materialized (select id from target_asks where target_id = ${id} order by id for update)
      delete from target_asks where id in (select id from locked)`);
    return (await tx.count(sql`delete from targets where id = ${id}`)) > 0;
  });
}

/** A secret cannot be read with any key that is set. */
export class SealedSecretError extends Error {
  override name = "SealedSecretError";
}

const SEALED = { purpose: "tain targets", boundTo: "tain targets" };

function sealSecret(config: Context["config"], secret: string | null): Buffer | null {
  return secret === null ? null : sealNewest(config, SEALED, secret);
}

/** The secret that signs requests to a target. Null: they are not signed. Only reads. @throws SealedSecretError */
export function secretOf(
  { config }: Pick<Context, "config">,
  { sealedSecret }: Pick<Target, "sealedSecret">,
): string | null {
  if (sealedSecret === null) return null;
  const opened = openAny(config, SEALED, sealedSecret);
  if (opened) return opened.text;
  throw new SealedSecretError(
    "Its secret was encrypted with a key that is not set: name it behind the present one, in ENCRYPTION_KEY or WEBHOOK_SECRET, or give the target its secret again",
  );
}

/** How many targets' secrets each key sealed. */
export interface SealedSecrets {
  /** By the key's place: 0 is the newest. */
  byKey: ReadonlyMap<number, number>;
  /** How many no key that is set opens. */
  unopened: number;
}

export async function countSealedSecrets(ctx: Pick<Context, "db" | "config">): Promise<SealedSecrets> {
  const byKey = new Map<number, number>();
  let unopened = 0;
  for await (const { secret } of sealedSecrets(ctx)) {
    const place = openAny(ctx.config, SEALED, secret)?.place;
    if (place === undefined) unopened += 1;
    else byKey.set(place, (byKey.get(place) ?? 0) + 1);
  }
  return { byKey, unopened };
}

/**
 * Seals what older keys sealed with the newest key, so that the older ones can be dropped. What no key opens stays as it
 * is. A secret that is changed meanwhile is left alone: the newest key sealed it. Answers how many it sealed anew.
 */
export async function resealSecrets(ctx: Pick<Context, "db" | "config">): Promise<number> {
  let resealed = 0;
  for await (const { id, secret } of sealedSecrets(ctx)) {
    const opened = openAny(ctx.config, SEALED, secret);
    if (opened === null || opened.place === 0) continue;
    const anew = sealSecret(ctx.config, opened.text);
    resealed += await ctx.db.count(sql`update targets set secret = ${anew} where id = ${id} and secret = ${secret}`);
  }
  return resealed;
}

const SECRETS_READ = 200;

async function* sealedSecrets({ db }: Pick<Context, "db">): AsyncGenerator<{ id: number; secret: Buffer }> {
  for (let last = 0; ; ) {
    const rows = await db
      .select({ id: targets.id, secret: targets.secret })
      .from(targets)
      .where(and(isNotNull(targets.secret), gt(targets.id, last)))
      .orderBy(targets.id)
      .limit(SECRETS_READ);
    for (const { id, secret } of rows) if (secret) yield { id, secret };
    const end = rows.at(-1);
    if (!end || rows.length < SECRETS_READ) return;
    last = end.id;
  }
}
