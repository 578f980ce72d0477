import { and, eq, getColumns, gt, lt } from "drizzle-orm";
import { type Database, type Queries, type Transaction, together } from "../../../db/database.ts";
import { among, sql } from "../../../db/sql.ts";
import { validators } from "../../schema.ts";
import type { Stores } from "../../stores.ts";
import { deleteInBatches } from "../../work/deletion.ts";
import type { Validator } from "../protocol/upstream.ts";

/** A validator without the page's body, which is large and rarely needed. */
export type KnownValidator = Omit<Validator, "body">;

/** A validator that was not used for this long is dropped; the page is then asked for once at full price. */
const KEPT_DAYS = 30;
/** `used_at` is written at most this often. */
const VALIDATOR_USED_MS = 24 * 3_600_000;
const BODIES_AT_ONCE = 10_000;

/**
 * Remembers that the page is stored, so that it can be asked for conditionally.
 *
 * Call it in the transaction that stores the page's rows, never before: a validator says "we have this page". If it
 * were saved and a crash lost the rows, upstream would answer 304 from then on, and the page would stay lost. For the
 * same reason the validators of other credentials are deleted. They stand for an older state, and the page may return
 * to that state. If two workers save the same page at once, the validator of the newer answer stays.
 */
export async function saveValidator(tx: Transaction, validator: Validator): Promise<void> {
  const { credential, path, etag, lastModified, next, isFull, seenAt, body, variesBy, usedAt, madeFor } = validator;
  // The two statements concern different rows, and neither needs the other's answer.
  await together([
    tx.query(sql`
      insert into validators (${VALIDATOR_COLUMNS})
        values (${credential}, ${path}, ${etag}, ${lastModified}, ${next}, ${isFull}, ${seenAt}, ${body}, ${variesBy},
          ${usedAt}, ${madeFor})
        ${UNLESS_OLDER}`),
    tx.query(sql`
      delete from validators where path = ${path} and credential <> ${credential} and seen_at <= ${seenAt}`),
  ]);
}

const VALIDATOR_COLUMNS = sql.script(
  "credential, path, etag, last_modified, next, is_full, seen_at, body, varies_by, used_at, made_for",
);
const UNLESS_OLDER = sql`
  on conflict (credential, path) do update set etag = excluded.etag, last_modified = excluded.last_modified,
      next = excluded.next, is_full = excluded.is_full, seen_at = excluded.seen_at, body = excluded.body,
      varies_by = excluded.varies_by, used_at = excluded.used_at, made_for = excluded.made_for
    where validators.seen_at <= excluded.seen_at`;

/** Remembers that several pages are stored, each as `saveValidator` does. Of two for one page the newer counts. */
export async function saveValidators(tx: Transaction, validators: readonly Validator[]): Promise<void> {
  const oldestFirst = validators.toSorted((a, b) => a.seenAt.getTime() - b.seenAt.getTime());
  const saved = [...new Map(oldestFirst.map((one) => [one.path, one])).values()];
  if (saved.length === 0) return;
  const of = <Name extends keyof Validator>(name: Name) => saved.map((one) => one[name]);
  await together([
    tx.query(sql`
      insert into validators (${VALIDATOR_COLUMNS})
        select ${VALIDATOR_COLUMNS} from unnest(${of("credential")}::text[], ${of("path")}::text[], ${of("etag")}::text[],
            ${of("lastModified")}::text[], ${of("next")}::text[], ${of("isFull")}::boolean[],
            ${of("seenAt")}::timestamptz[], ${of("body")}::bytea[], ${of("variesBy")}::text[],
            ${of("usedAt")}::timestamptz[], ${of("madeFor")}::text[]) as x(${VALIDATOR_COLUMNS})
        ${UNLESS_OLDER}`),
    tx.query(sql`
      delete from validators v
        using unnest(${of("credential")}::text[], ${of("path")}::text[], ${of("seenAt")}::timestamptz[])
          as x(credential, path, seen_at)
        where v.path = x.path and v.credential <> x.credential and v.seen_at <= x.seen_at`),
  ]);
}

/** Forgets that the page is stored: a validator of an older state must not confirm the state that replaced it. */
export async function forgetValidators(tx: Transaction, { path }: Pick<Validator, "path">): Promise<void> {
  await tx.delete(validators).where(eq(validators.path, path));
}

/** Forgets what was seen after `since`. */
export async function forgetValidatorsSince(tx: Transaction, since: Date): Promise<void> {
  await tx.delete(validators).where(gt(validators.seenAt, since));
}

/** Remembers these validators alone, even if they are not the newest: the stored rows are those of their answers. */
export async function replaceValidators(tx: Transaction, saved: readonly Validator[]): Promise<void> {
  if (saved.length === 0) return;
  const paths = saved.map(({ path }) => path);
  await tx.delete(validators).where(among(validators.path, paths));
  await saveValidators(tx, saved);
}

/** Forgets every page whose path matches, with the wildcards of `like`. */
export async function forgetValidatorsLike(db: Queries, paths: readonly string[]): Promise<void> {
  await db.delete(validators).where(sql`${validators.path} like any(${paths}::text[])`);
}

const { body: _, ...KNOWN } = getColumns(validators);

/** The validators of each page, by credential. All are for the same, newest answer. */
export async function findValidators(db: Database, paths: readonly string[]): Promise<Map<string, KnownValidator>[]> {
  const rows = await db.select(KNOWN).from(validators).where(among(validators.path, paths)).prepare().execute();
  const byPath = Map.groupBy(rows, ({ path }) => path);
  return paths.map((path) => {
    const known = byPath.get(path) ?? [];
    const newest = Math.max(...known.map(({ seenAt }) => seenAt.getTime()));
    return new Map(known.filter(({ seenAt }) => seenAt.getTime() === newest).map((row) => [row.credential, row]));
  });
}

/** The page as it was stored, gzipped; null when it is gone meanwhile. */
export async function loadBody(db: Queries, { credential, path, seenAt }: KnownValidator): Promise<Buffer | null> {
  const [row] = await db
    .select({ body: validators.body })
    .from(validators)
    .where(and(eq(validators.credential, credential), eq(validators.path, path), eq(validators.seenAt, seenAt)));
  return row?.body ?? null;
}

/**
 * Gives another credential, or the same with another token, the validator of a page that upstream has just confirmed
 * for it. One statement: when the page has been stored anew meanwhile, or forgotten, there is nothing to copy.
 */
export async function copyValidator(
  db: Queries,
  { credential, path, seenAt }: KnownValidator,
  copy: Pick<Validator, "credential" | "madeFor" | "etag" | "usedAt">,
): Promise<void> {
  await db.query(sql`
    insert into validators (credential, path, etag, last_modified, next, is_full, seen_at, used_at, made_for)
      select ${copy.credential}, path, ${copy.etag}, last_modified, next, is_full, seen_at, ${copy.usedAt}::timestamptz, ${copy.madeFor}
        from validators where credential = ${credential} and path = ${path} and seen_at = ${seenAt}
      on conflict (credential, path) do update
        set etag = excluded.etag, made_for = excluded.made_for, used_at = excluded.used_at
        where validators.seen_at = excluded.seen_at`);
}

/** Notes that the validator is used, once a day. */
export async function touchValidator(
  db: Queries,
  { credential, path, usedAt }: KnownValidator,
  now: Date,
): Promise<void> {
  if (now.getTime() - usedAt.getTime() < VALIDATOR_USED_MS) return;
  await db
    .update(validators)
    .set({ usedAt: now })
    .where(and(eq(validators.credential, credential), eq(validators.path, path), lt(validators.usedAt, now)));
}

/**
 * Drops validators that were not used for a month. A page's body stays while any credential's validator of the page is
 * in use. Answers how many were dropped.
 */
export async function pruneValidators(
  { db, clock }: Pick<Stores, "db" | "clock">,
  signal?: AbortSignal,
): Promise<number> {
  const before = new Date(clock.now().getTime() - KEPT_DAYS * 86_400_000);
  return await deleteInBatches(signal, (most) =>
    db.count(sql`
      with doomed as (
        select credential, path from validators v
          where used_at < ${before} and (body is null
            or not exists (select from validators used where used.path = v.path and used.used_at >= ${before}))
          limit ${most} for update skip locked
      ) delete from validators v using doomed where v.credential = doomed.credential and v.path = doomed.path`),
  );
}

/**
 * Keeps the bodies of all pages together below `validatorBodiesBytes`. It deletes those that were unused for longest,
 * down to nine tenths, at most BODIES_AT_ONCE in one call. The validators stay, and keep requests free as long as the
 * token is the same. Answers how many bodies were deleted. While the whole table is smaller, it reads none of it.
 */
export async function pruneBodies({ db, config }: Pick<Stores, "db" | "config">): Promise<number> {
  const most = config.validatorBodiesBytes;
  return await db.count(sql`
    with kept as (
      select credential, path, sum(octet_length(body)) over (order by used_at desc, seen_at desc, path, credential) as up_to,
          sum(octet_length(body)) over () as total
        from validators where body is not null and (select pg_table_size('validators')) > ${most}
    ), doomed as (
      select credential, path from kept where total > ${most} and up_to > ${most} * 0.9
        order by up_to desc limit ${BODIES_AT_ONCE}
    ) update validators v set body = null, varies_by = null from doomed
      where v.credential = doomed.credential and v.path = doomed.path`);
}

/**
 * The validator's name for a question. Another media type gets another body, and some questions are asked of one
 * credential alone. Last-Modified is the same for all of these, so both are part of the name. No path that is sent has
 * a `#`.
 */
export function validatorPath(path: string, { accept, credential }: { accept?: string; credential?: string }): string {
  return [path, accept, credential].filter((part) => part !== undefined).join("#");
}
