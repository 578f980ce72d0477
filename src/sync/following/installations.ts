import { and, eq, gt, isNotNull, isNull, lte, not, or } from "drizzle-orm";
import { alone } from "../../../db/alone.ts";
import type { Transaction } from "../../../db/database.ts";
import { IS_MIRRORED } from "../../../db/schema/mirrored.ts";
import type { FollowedState } from "../../../db/schema/states.ts";
import { among, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type Fields, type Json, numberOf, objectOf, textOf, wholeOf } from "../../json.ts";
import { InvalidRepresentationError, requireList } from "../../mirror/store/observation.ts";
import { enqueueCatchUps, orLater } from "../../queues/queues.ts";
import { installationRepositories, installations, repositorySyncs } from "../../schema.ts";
import { saveValidators } from "../../upstream/conditional/validators.ts";
import {
  type Installation,
  installationCredential,
  loadInstallations,
} from "../../upstream/credentials/installations.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import { pages } from "../../upstream/protocol/pagination.ts";
import type { Validator } from "../../upstream/protocol/upstream.ts";
import { Waits } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { type Installed, installedBy } from "../events/installed.ts";
import type { CredentialWait } from "../problems/causes.ts";
import { eachAlone, eachStored } from "../problems/isolated.ts";
import { tryAgain } from "../problems/problems.ts";
import { pause, pauseWithin } from "./pause.ts";
import { moveAll } from "./state.ts";

/** Webhooks report changes of an installation at once; this read finds those that they missed. */
const LIST_MS = 5 * 60_000;
/** Some replicas may not show a webhook's change yet. So upstream is asked again until this much later. */
const LAG_MS = 10_000;
const INSTALLATIONS_PATH = "/app/installations?per_page=100";
const REPOSITORIES = "/installation/repositories?per_page=100";

/** A repository that is paused already keeps its reason. */
const NOT_PAUSED: readonly FollowedState[] = ["live", "backfilling"];

/** How a repository that an installation covers begins to be mirrored. */
export interface Beginning {
  /** Whether a selection names the repository. */
  isWanted(repository: { id: number; fullName: string }): boolean;
  /** Begins with the representation that upstream showed. */
  begin(representation: Json, seenAt: Date): Promise<void>;
  /** Begins with the id alone. @throws AbsentError if upstream does not show the repository */
  beginById(repositoryId: number, fullName: string): Promise<void>;
}

/**
 * Reads what the App is installed on, conditionally, and makes the mirror follow. A repository that an installation
 * covers is begun if it is selected. A repository that no installation covers, or a suspended one, is paused with the
 * reason. Nothing is deleted. If another process does this already, this one waits and then does it again, because it
 * may know of more. An installation that fails delays no other. Answers why some have to wait.
 */
export async function followInstallations(
  ctx: Context,
  beginning: Beginning,
  stopped?: AbortSignal,
): Promise<CredentialWait | null> {
  const subjectOf = (key: string) => ({ task: "installation", key, repositoryId: null }) as const;
  const follow = async (signal: AbortSignal) => {
    const list = await eachAlone(ctx, ["app"], { subjectOf, signal, work: () => fetchAndStoreInstallations(ctx) });
    const due = (await loadDue(ctx)).filter(({ installation, isDue }) => installation.suspendedAt === null && isDue);
    const covered = await eachAlone(ctx, due, {
      subjectOf: ({ installation }) => subjectOf(String(installation.id)),
      groupOf: ({ installation }) => installation.id,
      signal,
      work: ({ installation }) => fetchAndStoreCovered(ctx, installation, beginning),
    });
    const begun = await beginWanted(ctx, beginning);
    await pauseUnreadable(ctx);
    return { waiting: list ?? covered ?? begun };
  };
  const waits = new Waits({ policy: RETRIES.othersInstallations, random: ctx.random, signal: stopped });
  do {
    const followed = await alone(ctx, "installations", follow, { signal: stopped });
    if (followed) return followed.waiting;
  } while (await waits.next());
  return null;
}

/** @throws InvalidRepresentationError at the end, if one of them has no id */
async function fetchAndStoreInstallations(ctx: Context): Promise<void> {
  const before = new Map((await loadInstallations(ctx.db)).map((each) => [each.id, each]));
  const told = await ctx.db.count(sql`select from installations where told_at is not null limit 1`);
  const startedAt = ctx.clock.now();
  const shownBy = ({ pages }: Walked) => shownIn(pages, ({ body }) => requireList(INSTALLATIONS_PATH, body));
  let read = await walk(ctx, INSTALLATIONS_PATH, { conditional: told === 0 });
  if (read.isUnchanged) return;
  // A page that has not changed does not say what stands on it.
  if (read.unchanged.length > 0) read = await walk(ctx, INSTALLATIONS_PATH, { conditional: false });
  const lacks = (shown: ShownListing) => [...before.keys()].some((id) => !shown.ids.has(id));
  if (lacks(shownBy(read))) read = await walk(ctx, INSTALLATIONS_PATH, { conditional: false });
  const { rows, ids, nameless } = shownBy(read);
  const shown = rows.flatMap(({ row }) => installedBy(row) ?? []);

  const lost: number[] = [];
  const gone = nameless > 0 ? [] : [...before.values()].filter(({ id }) => !ids.has(id));
  await ctx.db.transaction(async (tx) => {
    await storeInstallations(tx, shown);
    for (const { id, account } of gone) {
      const reason = `The GitHub App is no longer installed on ${account}: install it again`;
      lost.push(...(await uncover(ctx, tx, id, { kept: [], reason })));
      await tx.delete(installations).where(eq(installations.id, id));
    }
    const seen = new Date(startedAt.getTime() - LAG_MS);
    // A read just after the webhook may have come from a lagging replica, so it is done once more.
    await tx.update(installations).set({ toldAt: null, listedAt: null }).where(lte(installations.toldAt, seen));
    await saveValidators(tx, nameless > 0 ? [] : validatorsOf(read));
  });
  ctx.upstream.credentialsChanged();
  await handOver(ctx, lost);

  for (const { id, suspendedAt, permissions } of shown) {
    const known = before.get(id);
    const isBack = suspendedAt === null && (!known || known.suspendedAt !== null);
    if (!isBack && JSON.stringify(known?.permissions) === permissions) continue;
    // Upstream may now allow requests that it refused before.
    await ctx.upstream.tryAgain(installationCredential(id));
    await tryAgain(ctx.db, { repositoryIds: await findCovered(ctx, id) });
    await wakePaused(ctx, id);
  }
  for (const { id, suspendedAt } of shown) {
    if (suspendedAt !== null && before.get(id)?.suspendedAt === null) await handOver(ctx, await findCovered(ctx, id));
  }
  requireNamed("An installation of the App", nameless);
}

/** What a list shows, and its rows that have an id. */
interface ShownListing {
  rows: { id: number; row: Fields; of: WalkedPage }[];
  ids: ReadonlySet<number>;
  /** How many rows have none. Each may be any row that seems to be missing, so nothing counts as gone. */
  nameless: number;
}

/**
 * One answer that lacks a row may be a fault of the server that gave it, and would pause all that is mirrored there. So a
 * row is gone once two answers lack it.
 */
function shownIn(pages: readonly WalkedPage[], rowsOf: (page: WalkedPage) => Json[]): ShownListing {
  const all = pages.flatMap((of) => rowsOf(of).map((row) => ({ row: objectOf(row), of })));
  const rows = all.flatMap(({ row, of }) => {
    const id = wholeOf(row.id);
    return id === null ? [] : [{ id, row, of }];
  });
  return { rows, ids: new Set(rows.map(({ id }) => id)), nameless: all.length - rows.length };
}

function requireNamed(what: string, nameless: number): void {
  if (nameless > 0)
    throw new InvalidRepresentationError(`${what} came without its id or name, and all others are followed`);
}

async function loadDue(ctx: Context): Promise<{ installation: Installation; isDue: boolean }[]> {
  const before = new Date(ctx.clock.now().getTime() - LIST_MS);
  const { listedAt, toldAt } = installations;
  const rows = await ctx.db
    .select({ id: installations.id })
    .from(installations)
    .where(or(isNull(listedAt), lte(listedAt, before), isNotNull(toldAt)));
  const due = new Set(rows.map(({ id }) => id));
  return (await loadInstallations(ctx.db)).map((installation) => ({ installation, isDue: due.has(installation.id) }));
}

/** Reads which repositories an installation covers. @throws InvalidRepresentationError at the end, if one has no id */
async function fetchAndStoreCovered(ctx: Context, installation: Installation, beginning: Beginning): Promise<void> {
  const { id, account } = installation;
  const listed = await ctx.db.count(sql`
    select from installations i where id = ${id} and told_at is null
      and exists (select from installation_repositories c where c.installation_id = i.id)`);
  const startedAt = ctx.clock.now();
  const credential = installationCredential(id);
  const anew = () => walk(ctx, REPOSITORIES, { credential, conditional: false });
  const shownBy = (one: Walked) =>
    shownIn(one.pages, ({ body }) => requireList(REPOSITORIES, objectOf(body).repositories));
  let read = await walk(ctx, REPOSITORIES, { credential, conditional: listed > 0 });
  const total = numberOf(objectOf(read.pages[0]?.body).total_count);
  if (
    total !== null &&
    read.unchanged.length > 0 &&
    total !== (await countCovered(ctx, id, { on: read.unchanged })) + shownBy(read).rows.length
  ) {
    // The list moved between two pages, so a row may stand on no page that was read.
    read = await anew();
  }
  const lacks = async ({ ids }: ShownListing) =>
    (await countCovered(ctx, id, { notOn: read.unchanged, except: [...ids] })) > 0;
  if (!read.isUnchanged && (await lacks(shownBy(read)))) read = await anew();
  const { rows, ids, nameless } = shownBy(read);
  const covered = rows.flatMap(({ id, row, of: { page, seenAt } }) => {
    const fullName = textOf(row.full_name);
    return fullName === null ? [] : [{ id, fullName, shown: row, page, seenAt }];
  });

  let found: number[] = [];
  let lost: number[] = [];
  await ctx.db.transaction(async (tx) => {
    found = await storeCovered(tx, id, covered);
    if (!read.isUnchanged && nameless === 0)
      lost = await uncover(ctx, tx, id, {
        kept: [...ids],
        unchanged: read.unchanged,
        reason: `The GitHub App may no longer see it: it was taken out of the installation on ${account}. Add it there`,
      });
    await tx.update(installations).set({ listedAt: startedAt }).where(eq(installations.id, id));
    await saveValidators(tx, nameless > 0 ? [] : validatorsOf(read));
  });
  if (!read.isUnchanged) ctx.upstream.credentialsChanged();
  // Only now: a read of a private repository has to know which installation to use.
  const wanted = covered.filter((one) => beginning.isWanted(one));
  const faults = await eachStored(wanted, ({ shown, seenAt }) => beginning.begin(shown, seenAt));
  await handOver(ctx, lost);
  await wakePaused(ctx, id, found);
  if (faults.length > 0) throw faults[0];
  requireNamed(`A repository of the installation on ${account}`, nameless + rows.length - covered.length);
}

function validatorsOf({ pages }: Walked): Validator[] {
  return pages.flatMap(({ validator }) => validator ?? []);
}

/** One statement changes a row once, and a list that moves between two pages may show a row on both: the later counts. */
function lastOfEach<Row extends { id: number }>(rows: readonly Row[]): Row[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()];
}

async function storeInstallations(tx: Transaction, shown: readonly Installed[]): Promise<void> {
  const rows = lastOfEach(shown);
  const of = <Name extends keyof Installed>(name: Name) => rows.map((row) => row[name]);
  await tx.query(sql`
    insert into installations (id, account, account_id, account_type, repository_selection, permissions, events, suspended_at)
      select x.id, x.account, x.account_id, x.type, x.selection, x.permissions::json, x.events::json, x.suspended_at
        from unnest(${of("id")}::bigint[], ${of("account")}::text[], ${of("accountId")}::bigint[], ${of("type")}::text[], ${of("selection")}::text[],
            ${of("permissions")}::text[], ${of("events")}::text[], ${of("suspendedAt")}::timestamptz[])
          as x(id, account, account_id, type, selection, permissions, events, suspended_at)
      on conflict (id) do update set account = excluded.account, account_id = excluded.account_id, account_type = excluded.account_type,
        repository_selection = excluded.repository_selection, permissions = excluded.permissions, events = excluded.events,
        suspended_at = excluded.suspended_at`);
}

/** Notes the repositories that an installation covers. Answers those of which something is new. */
async function storeCovered(
  tx: Transaction,
  installationId: number,
  covered: readonly { id: number; fullName: string; page: number }[],
): Promise<number[]> {
  const rows = lastOfEach(covered);
  const written = await tx.query<{ id: number }>(sql`
    insert into installation_repositories as c (repository_id, installation_id, full_name, page)
      select x.id, ${installationId}, x.full_name, x.page
        from unnest(${rows.map(({ id }) => id)}::bigint[], ${rows.map(({ fullName }) => fullName)}::text[],
          ${rows.map(({ page }) => page)}::integer[]) as x(id, full_name, page)
      on conflict (repository_id) do update
        set installation_id = excluded.installation_id, full_name = excluded.full_name, page = excluded.page
        where (c.installation_id, c.full_name, c.page)
          is distinct from (excluded.installation_id, excluded.full_name, excluded.page)
      returning c.repository_id as id`);
  return written.map(({ id }) => id);
}

interface WalkedPage {
  page: number;
  body: Json;
  seenAt: Date;
  validator: Validator | null;
}

interface Walked {
  pages: WalkedPage[];
  /** The numbers of the pages that have not changed. */
  unchanged: number[];
  /** Whether no page has changed. */
  isUnchanged: boolean;
}

async function walk(
  ctx: Pick<Context, "upstream">,
  path: string,
  { conditional, ...options }: { credential?: string; conditional: boolean },
): Promise<Walked> {
  const read: Walked = { pages: [], unchanged: [], isUnchanged: true };
  let page = 0;
  for await (const answer of pages(ctx.upstream, path, {
    ...{ priority: "catch-up" as const, conditional, anew: !conditional },
    ...options,
  })) {
    page += 1;
    if (answer.kind === "unchanged") read.unchanged.push(page);
    else if (answer.kind === "ok")
      read.pages.push({ page, body: answer.body, seenAt: answer.seenAt, validator: answer.validator });
    else {
      const status = answer.kind === "missing" ? answer.status : 301;
      throw new UpstreamRefusedError(status, `${path.split("?")[0]} is not shown`, null);
    }
  }
  return { ...read, isUnchanged: read.pages.length === 0 };
}

/** How many covered repositories stand on some pages, or on others than those. */
async function countCovered(
  { db }: Pick<Context, "db">,
  id: number,
  where: { on: number[] } | { notOn: number[]; except: number[] },
): Promise<number> {
  const isMeant =
    "on" in where
      ? sql`page = any(${where.on}::integer[])`
      : sql`page > 0 and page <> all(${where.notOn}::integer[]) and repository_id <> all(${where.except}::bigint[])`;
  return await db.count(sql`select from installation_repositories where installation_id = ${id} and ${isMeant}`);
}

/**
 * A repository is no longer covered if no page that was read has it, and no unchanged page. Page 0 remembers that it
 * was covered. Answers the repositories that this pauses.
 */
async function uncover(
  ctx: Context,
  tx: Transaction,
  id: number,
  { kept, unchanged = [], reason }: { kept: number[]; unchanged?: number[]; reason: string },
): Promise<number[]> {
  const { repositoryId, installationId, page } = installationRepositories;
  const rows = await tx
    .update(installationRepositories)
    .set({ page: 0 })
    .where(and(eq(installationId, id), gt(page, 0), not(among(page, unchanged)), not(among(repositoryId, kept))))
    .returning({ id: repositoryId });
  const lost = rows.map((row) => row.id);
  const problem = `${reason}, or \`tain remove\` it here`;
  // A token may still see the repository, and a catch-up finds out.
  if (ctx.config.upstreamTokens.length > 0) return await moveAll(tx, lost, { from: NOT_PAUSED, to: "paused", problem });
  return await pauseWithin(ctx, tx, lost, { from: NOT_PAUSED, problem });
}

/** Begins covered repositories that were selected only after their page was read. */
async function beginWanted(ctx: Context, beginning: Beginning): Promise<CredentialWait | null> {
  const { repositoryId, installationId, fullName, page } = installationRepositories;
  const rows = await ctx.db
    .select({ repositoryId, fullName, installationId })
    .from(installationRepositories)
    .innerJoin(installations, eq(installations.id, installationId))
    .leftJoin(repositorySyncs, eq(repositorySyncs.repositoryId, repositoryId))
    .where(and(gt(page, 0), isNull(installations.suspendedAt), isNull(repositorySyncs.repositoryId)))
    .orderBy(repositoryId);
  const wanted = rows.filter(({ repositoryId: id, fullName }) => beginning.isWanted({ id, fullName }));
  return await eachAlone(ctx, wanted, {
    subjectOf: (row) => ({ task: "select", key: row.fullName.toLowerCase(), repositoryId: null }),
    groupOf: (row) => row.installationId,
    work: (row) => beginning.beginById(row.repositoryId, row.fullName),
  });
}

/** Without a token nobody can read what a suspended installation covers. */
async function pauseUnreadable(ctx: Context): Promise<void> {
  if (ctx.config.upstreamTokens.length > 0) return;
  for (const { id, account, suspendedAt } of await loadInstallations(ctx.db)) {
    if (suspendedAt === null) continue;
    const problem = `The GitHub App's installation on ${account} is suspended: an owner of ${account} can unsuspend it in its settings, under GitHub Apps`;
    const covered = await findCovered(ctx, id);
    await pause(ctx, covered, { from: NOT_PAUSED, problem });
  }
}

/** Tokens take over what an installation may no longer read. The catch-up pauses what no token sees. */
async function handOver(ctx: Context, repositoryIds: readonly number[]): Promise<void> {
  if (ctx.config.upstreamTokens.length === 0) return;
  await wakeRepositories(ctx, repositoryIds);
}

async function findCovered({ db }: Pick<Context, "db">, id: number): Promise<number[]> {
  const { repositoryId, installationId } = installationRepositories;
  const rows = await db
    .select({ id: repositoryId })
    .from(installationRepositories)
    .innerJoin(repositorySyncs, eq(repositorySyncs.repositoryId, repositoryId))
    .where(and(eq(installationId, id), IS_MIRRORED));
  return rows.map((row) => row.id);
}

/** A repository that an installation covers again is read at once, not only at the next interval. */
async function wakePaused(ctx: Context, id: number, only: number[] | null = null): Promise<void> {
  const { repositoryId, installationId, page } = installationRepositories;
  const isWanted = only === null ? undefined : among(repositoryId, only);
  const rows = await ctx.db
    .select({ id: repositoryId })
    .from(installationRepositories)
    .innerJoin(repositorySyncs, eq(repositorySyncs.repositoryId, repositoryId))
    .where(and(eq(installationId, id), gt(page, 0), eq(repositorySyncs.state, "paused"), isWanted));
  await wakeRepositories(
    ctx,
    rows.map((row) => row.id),
  );
}

async function wakeRepositories(ctx: Context, repositoryIds: readonly number[]): Promise<void> {
  if (repositoryIds.length === 0) return;
  await tryAgain(ctx.db, { repositoryIds });
  await orLater(ctx, { catchUps: repositoryIds.length }, () => enqueueCatchUps(ctx, repositoryIds, { atOnce: true }));
}
