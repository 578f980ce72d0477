import { among, sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { users } from "../schema.ts";
import { addressFault } from "./address-guard.ts";
import { lastSent } from "./sent.ts";
import { listTargets, type Maker, SealedSecretError, secretOf, type Target, type Telling } from "./target.ts";

/** A target, with the outcome of its last request and its problem. */
export interface ListedTarget extends Telling {
  id: number;
  /** What the target hears about: a name, or `everything`. */
  for: string;
  url: string;
  events: readonly string[];
  madeBy: Target["madeBy"];
  /** Who registered it, or resumed it last. Null: an operator, or it was not noted. */
  maker: (Maker & { login: string | null; tokenName: string | null }) | null;
  /** "paused" by the mirror, "off" by its owner. */
  state: "on" | "off" | "disabled" | "paused";
  lastStatus: string | null;
  waiting: Backlog | null;
  /** The target's problem in words. Null: none. */
  problem: string | null;
}

/** All targets, the oldest first. */
export async function findListedTargets(ctx: Pick<Context, "db" | "config">): Promise<ListedTarget[]> {
  const found = await listTargets(ctx);
  const last = await lastSent(
    ctx,
    found.map(({ id }) => id),
  );
  const waiting = await waitingFor(ctx);
  const names = await scopeNames(ctx, found);
  const logins = await loginsOf(ctx, found);
  const tokenNames = await tokenNamesOf(ctx, found);
  const listed: ListedTarget[] = [];
  for (const target of found) {
    const { id, url, events, format, actions, labels, madeBy, active, disabledAt, maker, pausedWhy } = target;
    const lastStatus = last.get(id)?.status ?? null;
    listed.push({
      ...{ id, for: names.get(id) ?? "?", url, events, format, actions, labels },
      ...{ madeBy, lastStatus, waiting: waiting.get(id) ?? null },
      maker: maker && {
        ...maker,
        login: logins.get(maker.userId) ?? null,
        tokenName: tokenNames.get(maker.token) ?? null,
      },
      state: pausedWhy !== null ? "paused" : disabledAt !== null ? "disabled" : active ? "on" : "off",
      problem: problemOf(ctx, target, lastStatus),
    });
  }
  return listed;
}

function problemOf(ctx: Pick<Context, "config">, target: Target, lastStatus: string | null): string | null {
  const known = target.pausedWhy ?? target.problem;
  if (known !== null) return known;
  if (addressFault(ctx.config.targetsAllowed, target.url) !== null)
    return "Its address is not on the public Internet, and TARGETS_ALLOWED does not name it";
  try {
    secretOf(ctx, target);
  } catch (error) {
    if (!(error instanceof SealedSecretError)) throw error;
    return error.message;
  }
  return lastStatus === null || lastStatus === "OK" ? null : `Its last request failed: ${lastStatus}`;
}

/** The present name of what each target hears about. */
async function scopeNames({ db }: Pick<Context, "db">, found: readonly Target[]): Promise<Map<number, string>> {
  const ids = (kind: Target["scope"]["kind"]) => found.flatMap(({ scope }) => (scope.kind === kind ? [scope.id] : []));
  const rows = await db.query<{ kind: string; id: number; name: string }>(sql`
    select 'repository' as kind, id, full_name as name from repositories where id = any(${ids("repository")}::bigint[])
    union all select 'organization', id, login || '/*' from users where id = any(${ids("organization")}::bigint[])`);
  const names = new Map(rows.map(({ kind, id, name }) => [`${kind} ${id}`, name]));
  return new Map(
    found.map(({ id, scope }) => [
      id,
      scope.kind === "everything"
        ? "everything"
        : (names.get(`${scope.kind} ${scope.id}`) ?? `${scope.kind} ${scope.id}`),
    ]),
  );
}

/** The present logins of those who made targets, by their ids. */
async function loginsOf({ db }: Pick<Context, "db">, found: readonly Target[]): Promise<Map<number, string>> {
  const ids = [...new Set(found.flatMap(({ maker }) => (maker ? [maker.userId] : [])))];
  const rows = await db.select({ id: users.id, login: users.login }).from(users).where(among(users.id, ids));
  return new Map(rows.map(({ id, login }) => [id, login]));
}

/** What our tokens are called that made targets, by their ids. */
async function tokenNamesOf(
  { db }: Pick<Context, "db">,
  found: readonly Target[],
): Promise<Map<string, string | null>> {
  const ids = found.flatMap(({ maker }) => (maker?.tokenOf === "own" ? [maker.token] : []));
  const rows = await db.query<{ id: string; name: string | null }>(
    sql`select id, name from api_tokens where id = any(${ids}::text[])`,
  );
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** How many events wait for a target. */
interface Backlog {
  /** How many repositories have events that it was not sent yet. */
  repositories: number;
  /** When the oldest event that waits was received; null: none waits. */
  oldestAt: Date | null;
  /** When the next failed event is tried again; null: none has failed. */
  retryAt: Date | null;
}

/** By the targets' ids. A target without a backlog is left out. */
async function waitingFor({ db }: Pick<Context, "db">): Promise<Map<number, Backlog>> {
  const rows = await db.query<Backlog & { id: number }>(sql`
    select c.target_id as id, count(*) as repositories, min(e.received_at) as "oldestAt",
        min(c.retry_at) as "retryAt"
      from target_cursors c left join lateral (select received_at from events
        where repository_id = c.repository_id and id > c.done_id and id <= c.wanted_id order by id limit 1) e on true
      where c.wanted_id > c.done_id group by c.target_id`);
  return new Map(rows.map(({ id, ...waiting }) => [id, waiting]));
}
