import type { Database, Queries } from "../../db/database.ts";
import { auditLog } from "../../db/schema/callers.ts";
import { escapeLike, sql } from "../../db/sql.ts";
import { levelOf } from "../failure.ts";
import type { Logger } from "../operations/log.ts";
import { deleteInBatches } from "./deletion.ts";

/** Who acts. Never a token itself. */
export interface AuditActor {
  kind: "terminal" | "operator" | "own" | "upstream" | "stranger";
  /** The machine's user, the page's session, or the id or fingerprint of a token. */
  name?: string | null;
  userId?: number | null;
  address?: string | null;
}

/** What is done. */
export interface Act {
  actor: AuditActor;
  /** Its first word is the kind, such as `hook.create`. Each kind has a bound of its own. */
  action: string;
  /** What it is done to, by its id. */
  object?: string | null;
  /** Of a command, without secrets. */
  args?: readonly string[];
  requestId?: string | null;
}

type ActOutcome = "unknown" | "done" | "failed" | "refused";

interface LogContext {
  db: Queries;
  clock: { now(): Date };
}

/** Enters an act of which it is known how it ended. @throws what the database throws: the caller decides */
export async function noteAct(ctx: LogContext, act: Act, outcome: Exclude<ActOutcome, "unknown">): Promise<void> {
  await enter(ctx, act, outcome);
}

/**
 * Enters an act before it is done, and its outcome afterwards. While it cannot be entered, it is not done. If only the
 * outcome cannot be stored, the act stands, and its row goes on to say "unknown".
 */
export async function recordAct<T>(
  ctx: LogContext & { log: Logger },
  act: Act,
  run: () => Promise<T>,
  isDone: (result: T) => boolean = () => true,
  objectOf: (result: T) => string | null = () => null,
): Promise<T> {
  const id = await enter(ctx, act, "unknown");
  let outcome: ActOutcome = "failed";
  let object: string | null = null;
  try {
    const result = await run();
    if (isDone(result)) outcome = "done";
    object = objectOf(result);
    return result;
  } finally {
    try {
      await ctx.db.query(
        sql`update audit_log set outcome = ${outcome}, object = coalesce(${object}, object) where id = ${id}`,
      );
    } catch (error) {
      ctx.log[levelOf(error, "warn")](
        { err: error, action: act.action },
        "The outcome of an act could not be recorded",
      );
    }
  }
}

async function enter(
  { db, clock }: LogContext,
  { actor, action, object = null, args = [], requestId = null }: Act,
  outcome: ActOutcome,
  { times, at, lastAt }: { times: number; at: Date; lastAt: Date | null } = { times: 1, at: clock.now(), lastAt: null },
): Promise<number> {
  const { kind: actorKind, name, userId, address } = actor;
  const entry = { at, lastAt, times, action, object, arguments: [...args], outcome, requestId };
  const [row] = await db
    .insert(auditLog)
    .values({ ...entry, actorKind, actor: name, userId, address })
    .returning({ id: auditLog.id });
  if (!row) throw new Error("An entry of the audit log was made and has no id");
  return row.id;
}

/** How many addresses a process enters in a minute. The rest of the minute's refusals share one row. */
const ADDRESSES = 20;
const COUNTED_MS = 60_000;

interface CountedRefusals {
  times: number;
  at: Date;
  lastAt: Date;
}

interface RefusalContext extends LogContext {
  db: Database;
  log: Logger;
}

/**
 * Counts refusals of callers, and enters the counts once a minute. So strangers cannot fill the log. What cannot be
 * entered is counted on, and entered later.
 */
export class RefusalCounts {
  readonly #ctx: RefusalContext;
  /** By action and address. */
  #counted = new Map<string, CountedRefusals>();
  #timer: NodeJS.Timeout | null = null;
  #entering: Promise<void> = Promise.resolve();

  constructor(ctx: RefusalContext) {
    this.#ctx = ctx;
  }

  /** `action`: such as `refusal.token`. */
  count(action: string, address: string): void {
    // Whoever this request is passed on to counts it.
    if (this.#ctx.db.isReadOnly) return;
    const own = `${action} ${address}`;
    const key = this.#counted.has(own) || this.#counted.size < ADDRESSES ? own : `${action} `;
    const now = this.#ctx.clock.now();
    const { times, at } = this.#counted.get(key) ?? { times: 0, at: now };
    this.#counted.set(key, { times: times + 1, at, lastAt: now });
    this.#timer ??= setTimeout(() => void this.flush(), COUNTED_MS).unref();
  }

  /** Enters what was counted. Never throws. */
  async flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#entering = this.#entering.then(() => this.#enterAll());
    await this.#entering;
  }

  async #enterAll(): Promise<void> {
    for (const [key, counted] of this.#counted) {
      const [action = "", address = ""] = key.split(" ");
      this.#counted.delete(key);
      try {
        const actor = { kind: "stranger", address: address || null } as const;
        await enter(this.#ctx, { actor, action }, "refused", counted);
      } catch (error) {
        const since = this.#counted.get(key);
        this.#counted.set(key, since ? { ...since, times: since.times + counted.times, at: counted.at } : counted);
        this.#timer ??= setTimeout(() => void this.flush(), COUNTED_MS).unref();
        this.#ctx.log[levelOf(error, "warn")](
          { err: error },
          "RefusalCounts could not be entered in the audit log yet",
        );
        return;
      }
    }
  }
}

/** One entry, as far as it may be shown. */
export interface ListedAct {
  id: string;
  at: Date;
  lastAt: Date | null;
  times: number;
  actorKind: AuditActor["kind"];
  actor: string | null;
  /** What the token is called that acts. Null: it has no name, or no token of ours acts. */
  actorName: string | null;
  /** Null while that user is not mirrored. */
  login: string | null;
  address: string | null;
  action: string;
  object: string | null;
  /** What the token is called that it is done to. Null: it has no name, or it is done to no token of ours. */
  objectName: string | null;
  arguments: string[];
  outcome: ActOutcome;
  requestId: string | null;
}

/** The newest first. `actor`: a kind, a name, an address, a login or a token's name. `action`: one, or the words that it begins with. */
export async function listActs(
  { db }: Pick<LogContext, "db">,
  { since, actor, action, limit }: { since?: Date; actor?: string; action?: string; limit: number },
): Promise<ListedAct[]> {
  const conditions = [
    ...(since === undefined ? [] : [sql`coalesce(a.last_at, a.at) >= ${since}`]),
    ...(actor === undefined
      ? []
      : [sql`(${actor} in (a.actor_kind, a.actor, a.address, k.name) or folded(u.login) = folded(${actor}))`]),
    ...(action === undefined ? [] : [sql`(a.action || '.') like ${`${escapeLike(action)}.%`}`]),
  ];
  return await db.query(sql`
    select a.id::text, a.at, a.last_at as "lastAt", a.times, a.actor_kind as "actorKind", a.actor,
        k.name as "actorName", u.login, a.address, a.action,
        a.object, o.name as "objectName", a.arguments, a.outcome, a.request_id as "requestId"
      from audit_log a left join users u on u.id = a.user_id
        left join api_tokens k on k.id = a.actor and a.actor_kind = 'own'
        left join api_tokens o on o.id = a.object and a.action like 'token.%'
      where ${sql.and(conditions)} order by a.at desc, a.id desc limit ${limit}`);
}

/** Each kind keeps its newest rows. So a flood of one kind pushes out no row of another. */
const KIND_ROWS = 100_000;

/** Deletes what is older than AUDIT_LOG_RETENTION, and the oldest rows of each kind beyond its bound. */
export async function pruneAuditLog(
  { db, clock, config }: LogContext & { config: { readonly auditLogRetentionMs: number } },
  signal?: AbortSignal,
  kindRows = KIND_ROWS,
): Promise<number> {
  const before = new Date(clock.now().getTime() - config.auditLogRetentionMs);
  const old = await deleteInBatches(signal, (most) =>
    db.count(sql`delete from audit_log where id in (
      select id from audit_log where at < ${before} order by at, id limit ${most})`),
  );
  const kinds = await db.query<{ kind: string }>(
    sql`select distinct split_part(action, '.', 1) as kind from audit_log`,
  );
  let beyond = 0;
  for (const { kind } of kinds)
    beyond += await deleteInBatches(signal, (most) =>
      db.count(sql`delete from audit_log where id in (
        select id from audit_log where split_part(action, '.', 1) = ${kind} order by split_part(action, '.', 1), id desc
          offset ${kindRows} limit ${most})`),
    );
  return old + beyond;
}
