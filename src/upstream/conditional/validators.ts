import type { Database, Queries } from "../../../db/connection.ts";
import { and, eq, getTableColumns, lt, lte, ne, sql } from "../../../db/drizzle.ts";
import { GatheredRead } from "../../../db/gathered.ts";
import { validators } from "../../../db/schema/sync.ts";
import type { Stores } from "../../stores.ts";

/** What upstream gave us to ask one question again without cost, with one credential. */
export type Validator = typeof validators.$inferSelect;
/** The same without the body, which is large and rarely needed. */
export type KnownValidator = Omit<Validator, "body">;

const { body: _body, ...knownColumns } = getTableColumns(validators);

/** A validator that has been of no use for so long is dropped; the page is then asked once at full price. */
const keptDays = 30;
/** `used_at` is written at most this often. */
const touchMs = 24 * 3_600_000;
const pruneBatch = 1_000;

/**
 * Remembers that the page is stored, so that it can be asked for conditionally.
 *
 * Call it in the transaction that stores the page's rows, never before: a validator says "we have this page". Were it saved
 * and the rows were lost to a crash, upstream would answer 304 from then on, and the page would stay lost for good.
 * For the same reason those of other credentials go: they say so of an older state of the page, to which it may return.
 * Two workers that save the same page at once leave the one of the newer answer.
 */
export async function saveValidator(tx: Queries, validator: Validator): Promise<void> {
  const { credential, path, ...rest } = validator;
  // They concern different rows, and neither needs the other's answer.
  await Promise.all([
    tx
      .insert(validators)
      .values(validator)
      .onConflictDoUpdate({
        target: [validators.credential, validators.path],
        set: rest,
        setWhere: lte(validators.seenAt, validator.seenAt),
      })
      .execute(),
    tx
      .delete(validators)
      .where(
        and(eq(validators.path, path), ne(validators.credential, credential), lte(validators.seenAt, validator.seenAt)),
      )
      .execute(),
  ]);
}

/** Forgets that the page is stored: what is known of an older state of it must not confirm the one that is stored instead. */
export async function forgetValidators(tx: Pick<Queries, "delete">, { path }: Pick<Validator, "path">): Promise<void> {
  await tx.delete(validators).where(eq(validators.path, path)).execute();
}

/** What says that we have the page, by credential: all of one answer, the newest. */
export function loadValidators(db: Database, path: string): Promise<Map<string, KnownValidator>> {
  return gathered.find(db, path);
}

/** A sweep asks for thousands, several at a time. */
const gathered = new GatheredRead<string, Map<string, KnownValidator>>(async (db, paths) => {
  const { rows } = await db.$client.query<KnownValidator>({ name: "validators", text: FIND_KNOWN, values: [paths] });
  const byPath = Map.groupBy(rows, ({ path }) => path);
  return paths.map((path) => {
    const known = byPath.get(path) ?? [];
    const newest = Math.max(...known.map(({ seenAt }) => seenAt.getTime()));
    return new Map(known.filter(({ seenAt }) => seenAt.getTime() === newest).map((row) => [row.credential, row]));
  });
});

const FIND_KNOWN = `select ${Object.entries(knownColumns).map(([name, column]) => `${column.name} as "${name}"`)}
  from validators where path = any($1)`;

/** The page as it was stored, gzipped; null when it is gone meanwhile. */
export async function loadBody(
  db: Pick<Database, "select">,
  { credential, path, seenAt }: KnownValidator,
): Promise<Buffer | null> {
  const [row] = await db
    .select({ body: validators.body })
    .from(validators)
    .where(and(eq(validators.credential, credential), eq(validators.path, path), eq(validators.seenAt, seenAt)));
  return row?.body ?? null;
}

/**
 * Gives another credential, or the same with another token, the validator of a page that upstream has just confirmed for it.
 * One statement: when the page has been stored anew meanwhile, or forgotten, there is nothing to copy.
 */
export async function copyValidator(
  db: Pick<Database, "execute">,
  { credential, path, seenAt }: KnownValidator,
  copy: Pick<Validator, "credential" | "madeFor" | "etag" | "usedAt">,
): Promise<void> {
  await db.execute(sql`
    insert into validators (credential, path, etag, last_modified, next, is_full, seen_at, used_at, made_for)
      select ${copy.credential}, path, ${copy.etag}, last_modified, next, is_full, seen_at, ${copy.usedAt}::timestamptz, ${copy.madeFor}
        from validators where credential = ${credential} and path = ${path} and seen_at = ${seenAt}
      on conflict (credential, path) do update
        set etag = excluded.etag, made_for = excluded.made_for, used_at = excluded.used_at
        where validators.seen_at = excluded.seen_at`);
}

/** Notes that the validator is of use, once a day. */
export async function touchValidator(
  db: Pick<Database, "update">,
  { credential, path, usedAt }: KnownValidator,
  now: Date,
): Promise<void> {
  if (now.getTime() - usedAt.getTime() < touchMs) return;
  await db
    .update(validators)
    .set({ usedAt: now })
    .where(and(eq(validators.credential, credential), eq(validators.path, path), lt(validators.usedAt, now)));
}

/**
 * Drops what has been of no use for a month. A page's body stays as long as any credential's validator of the page is in
 * use. Answers how many were dropped.
 */
export async function pruneValidators(
  { db, clock }: Pick<Stores, "db" | "clock">,
  signal?: AbortSignal,
): Promise<number> {
  const before = new Date(clock.now().getTime() - keptDays * 86_400_000);
  let pruned = 0;
  while (!signal?.aborted) {
    const { rowCount } = await db.execute(sql`
      with doomed as (
        select credential, path from validators v
          where used_at < ${before} and (body is null
            or not exists (select from validators used where used.path = v.path and used.used_at >= ${before}))
          limit ${pruneBatch} for update skip locked
      ) delete from validators v using doomed where v.credential = doomed.credential and v.path = doomed.path`);
    pruned += rowCount ?? 0;
    if ((rowCount ?? 0) < pruneBatch) break;
  }
  return pruned;
}

/**
 * Keeps the bodies of all pages below `validatorBodiesBytes` together: those that were of no use for longest go first, down to
 * nine tenths of it. Their validators stay, and cost nothing as long as the token is the same. Answers how many went.
 */
export async function pruneBodies({ db, config }: Pick<Stores, "db" | "config">): Promise<number> {
  const most = config.validatorBodiesBytes;
  const { rowCount } = await db.execute(sql`
    with kept as (
      select credential, path, sum(octet_length(body)) over (order by used_at desc, seen_at desc, path, credential) as up_to,
          sum(octet_length(body)) over () as total
        from validators where body is not null
    ) update validators v set body = null, varies_by = null from kept
      where kept.total > ${most} and kept.up_to > ${most} * 0.9 and v.credential = kept.credential and v.path = kept.path`);
  return rowCount ?? 0;
}

/**
 * The validator's name for a question. Another media type gets another body, and what is asked of one credential alone is
 * its own affair; Last-Modified does not tell them apart, so both are part of the name. `#` begins no part of a path that is
 * sent.
 */
export function validatorPath(path: string, { accept, credential }: { accept?: string; credential?: string }): string {
  return [path, accept, credential].filter((part) => part !== undefined).join("#");
}
