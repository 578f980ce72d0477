import { alone } from "../../../db/alone.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { arrivedFrom } from "../../inbox/arrivals.ts";
import { requireList } from "../../mirror/store/representation.ts";
import { enqueueCatchUp } from "../../queues/enqueue.ts";
import { UpstreamRefusedError } from "../../upstream/client/errors.ts";
import type { Answer } from "../../upstream/client/upstream.ts";
import { saveValidator, type Validator } from "../../upstream/conditional/validators.ts";
import { APP_DELIVERIES } from "../../upstream/hooks/app-hook.ts";
import { hookAt, resendDelivery, type SentDelivery, sentDeliveries } from "../../upstream/hooks/hooks.ts";

/** A delivery that is younger may still be on its way. */
const SETTLED_MS = 60_000;
/** Upstream's list is read again so far before where the last check ended: a delivery is listed once it has been tried. */
const OVERLAP_MS = 5 * 60_000;
/** GitHub docs: deliveries are listed, and can be sent again, for three days. */
const LISTED_MS = 3 * 24 * 3_600_000;
/** A delivery that failed this often will fail again; then upstream's state is read instead. */
const MAX_ATTEMPTS = 3;
/** More is asked for by one catch-up, which costs less: upstream takes a write a second. */
const MAX_ASKED = 30;

/** Stands in `hook_checks` for: upstream shows us no hook of ours here, and we may not be allowed to see any. */
const NO_HOOK = "0";
const LOOK_AGAIN_MS = 6 * 3_600_000;

export interface CheckedDeliveries {
  /** Deliveries that the inbox lacks. */
  missed: number;
  /** How many of them upstream was asked to send again. */
  asked: number;
}

/** Stands for the repository, and for the hook, of the App's one webhook: it serves all that the App is installed on. */
const APP_HOOK = 0;

interface Hook {
  repositoryId: number;
  hookId: number;
  /** Upstream's list of its deliveries. */
  list: string;
  /** By upstream's clock; null: never checked. */
  checkedUntil: Date | null;
}

/**
 * Compares upstream's list of what it sent to our webhooks with the inbox, and asks again for what is missing. It asks
 * for each delivery, or for a catch-up if a redelivery cannot help.
 */
export async function checkDeliveries(ctx: Context, signal?: AbortSignal): Promise<CheckedDeliveries> {
  return (await alone(ctx, "check of deliveries", () => checkHooks(ctx, signal))) ?? { missed: 0, asked: 0 };
}

async function checkHooks(ctx: Context, signal: AbortSignal | undefined): Promise<CheckedDeliveries> {
  const total = { missed: 0, asked: 0 };
  for (const hook of await findHooks(ctx)) {
    if (signal?.aborted) break;
    const { missed, asked } = await checkHook(ctx, hook);
    total.missed += missed;
    total.asked += asked;
  }
  if (total.missed > 0) ctx.log.warn(total, "Webhooks were missed");
  return total;
}

/** The App's webhook; null without an App. */
async function findAppHook(ctx: Context): Promise<Hook | null> {
  if (ctx.config.appId === null) return null;
  const [row] = await ctx.db.query<{ checked_until: Date }>(
    sql`select checked_until from hook_checks where repository_id = ${APP_HOOK} and hook_id = ${APP_HOOK}`,
  );
  const checkedUntil = row?.checked_until ?? null;
  return { repositoryId: APP_HOOK, hookId: APP_HOOK, list: APP_DELIVERIES, checkedUntil };
}

/** A hook is ours if we know its deliveries or it has our address. The App's repositories need none. */
async function findHooks(ctx: Context): Promise<Hook[]> {
  const listedSince = new Date(ctx.clock.now().getTime() - LISTED_MS);
  const rows = await ctx.db.query<{ repository_id: string; hook_id: string | null; checked_until: Date | null }>(sql`
    select s.repository_id, h.hook_id, c.checked_until from repository_syncs s
      left join lateral (select hook_id from hook_checks where repository_id = s.repository_id
        union select distinct hook_id from deliveries where repository_id = s.repository_id and received_at > ${listedSince}) h on true
      left join hook_checks c on c.repository_id = s.repository_id and c.hook_id = h.hook_id
      where s.state = 'live' and not (${ctx.config.appId !== null}::boolean and exists (select from installation_repositories i
        where i.repository_id = s.repository_id and i.page > 0)) order by s.repository_id, h.hook_id`);
  const appHook = await findAppHook(ctx);
  const hooks: Hook[] = appHook ? [appHook] : [];
  const lookAgainBefore = ctx.clock.now().getTime() - LOOK_AGAIN_MS;
  for (const [repository_id, known] of Map.groupBy(rows, (row) => row.repository_id)) {
    const repositoryId = Number(repository_id);
    const looked = known.find(({ hook_id }) => hook_id === NO_HOOK)?.checked_until;
    if (looked && looked.getTime() > lookAgainBefore) continue;
    const named = known.filter(({ hook_id }) => hook_id !== null && hook_id !== NO_HOOK);
    for (const { hook_id, checked_until } of named)
      hooks.push(repositoryHook(repositoryId, Number(hook_id), checked_until));
    if (named.length > 0) continue;
    const hookId = await findByAddress(ctx, repositoryId);
    if (hookId !== null) hooks.push(repositoryHook(repositoryId, hookId, null));
    else await rememberNoHook(ctx, repositoryId);
  }
  return hooks;
}

function repositoryHook(repositoryId: number, hookId: number, checkedUntil: Date | null): Hook {
  return { repositoryId, hookId, list: `/repositories/${repositoryId}/hooks/${hookId}/deliveries`, checkedUntil };
}

/** To ask in vain costs a request each time, for each repository. */
async function rememberNoHook(ctx: Context, repositoryId: number): Promise<void> {
  await ctx.db.query(sql`insert into hook_checks (repository_id, hook_id, checked_until)
    values (${repositoryId}, ${Number(NO_HOOK)}, ${ctx.clock.now()})
    on conflict (repository_id, hook_id) do update set checked_until = excluded.checked_until`);
}

/** A hook that never reached us is known by its address. Null: none has ours, or we may not see the hooks. */
async function findByAddress(ctx: Context, repositoryId: number): Promise<number | null> {
  if (ctx.config.publicUrl === null) return null;
  const url = `${ctx.config.publicUrl}/webhooks`;
  const path = `/repositories/${repositoryId}/hooks?per_page=100`;
  const answer = await askOrNull(ctx, path, false);
  return answer?.kind === "ok" ? hookAt(requireList(path, answer.body), url) : null;
}

/** null: the token may not see hooks, which leaves the sweep to find what was missed. */
async function askOrNull(ctx: Context, path: string, conditional: boolean): Promise<Answer | null> {
  try {
    return await ctx.upstream.get(path, { priority: "catch-up", conditional });
  } catch (error) {
    if (error instanceof UpstreamRefusedError) return null;
    throw error;
  }
}

async function checkHook(ctx: Context, hook: Hook): Promise<CheckedDeliveries> {
  const read = await readDeliveries(ctx, hook);
  if (read === "hidden" && hook.repositoryId !== APP_HOOK) await rememberNoHook(ctx, hook.repositoryId);
  if (read === "hidden" || read === "unchanged") return { missed: 0, asked: 0 };
  const { listed, upstreamNow, validator, isTooOld } = read;
  const settled = listed.filter(({ deliveredAt }) => deliveredAt.getTime() <= upstreamNow.getTime() - SETTLED_MS);
  const missing = await findMissing(
    ctx,
    hook,
    Map.groupBy(settled, ({ guid }) => guid),
  );
  const hopeful = missing.filter((attempts) => attempts.length < MAX_ATTEMPTS).slice(0, MAX_ASKED);
  for (const [newest] of hopeful) {
    if (newest) await resendDelivery(ctx.upstream, hook.list, newest);
  }
  const hopeless = missing.filter((attempts) => !hopeful.includes(attempts));
  for (const repositoryId of await concerned(ctx, hook, isTooOld ? "all" : hopeless))
    await enqueueCatchUp(ctx, { repositoryId });

  const isQuiet = settled.length === listed.length && missing.length === 0;
  const until = new Date(upstreamNow.getTime() - SETTLED_MS);
  await ctx.db.transaction(async (tx) => {
    await tx.query(sql`insert into hook_checks (repository_id, hook_id, checked_until, missed)
      values (${hook.repositoryId}, ${hook.hookId}, ${until}, ${missing.length})
      on conflict (repository_id, hook_id) do update set checked_until = greatest(hook_checks.checked_until, excluded.checked_until),
        missed = hook_checks.missed + excluded.missed`);
    const untold = namedIn(hook, missing);
    if (untold.length > 0)
      await tx.query(
        sql`update sweeps set untold_at = ${ctx.clock.now()} where repository_id = any(${untold}::bigint[])`,
      );
    // Installations are read from upstream at the next look, even if the missing delivery does not come again.
    if (hook.repositoryId === APP_HOOK && missing.some(([newest]) => newest?.event.startsWith("installation")))
      await tx.query(sql`update installations set listed_at = null`);
    // While anything is open the list must be read again; unchanged it would not be.
    if (isQuiet && validator) await saveValidator(tx, validator);
  });
  return { missed: missing.length, asked: hopeful.length };
}

/** Which repositories the deliveries are of. */
function namedIn({ repositoryId }: Hook, missing: SentDelivery[][]): number[] {
  if (missing.length === 0 || repositoryId !== APP_HOOK) return missing.length === 0 ? [] : [repositoryId];
  return [...new Set(missing.flatMap(([newest]) => newest?.repositoryId ?? []))];
}

/** Which mirrored repositories have to be read instead. */
async function concerned(ctx: Context, hook: Hook, missing: SentDelivery[][] | "all"): Promise<number[]> {
  if (hook.repositoryId !== APP_HOOK) return missing === "all" || missing.length > 0 ? [hook.repositoryId] : [];
  const isConcerned = missing === "all" ? sql`true` : sql`s.repository_id = any(${namedIn(hook, missing)}::bigint[])`;
  const rows = await ctx.db.query<{ repository_id: string }>(sql`
    select s.repository_id from repository_syncs s join installation_repositories i using (repository_id)
      where s.state = 'live' and i.page > 0 and ${isConcerned} order by s.repository_id`);
  return rows.map(({ repository_id }) => Number(repository_id));
}

interface ReadDeliveries {
  /** Newest first. */
  listed: SentDelivery[];
  upstreamNow: Date;
  validator: Validator | null;
  /** The last check is longer ago than upstream lists deliveries. */
  isTooOld: boolean;
}

/** "unchanged": since all of it was in the inbox. "hidden": the hook is gone, or the token may not see it. */
async function readDeliveries(
  ctx: Context,
  { list, checkedUntil }: Hook,
): Promise<ReadDeliveries | "unchanged" | "hidden"> {
  const listed: SentDelivery[] = [];
  let read: ReadDeliveries | null = null;
  for (let path: string | null = `${list}?per_page=100`; path !== null; ) {
    const answer: Answer | null = await askOrNull(ctx, path, read === null);
    if (answer?.kind === "unchanged") return "unchanged";
    if (answer?.kind !== "ok") return "hidden";
    const since = Math.max(checkedUntil?.getTime() ?? 0, answer.upstreamNow.getTime() - LISTED_MS) - OVERLAP_MS;
    const isTooOld = checkedUntil !== null && answer.upstreamNow.getTime() - checkedUntil.getTime() > LISTED_MS;
    read ??= { listed, upstreamNow: answer.upstreamNow, validator: answer.validator, isTooOld };
    const page = sentDeliveries(requireList(path, answer.body));
    const recent = page.filter(({ deliveredAt }) => deliveredAt.getTime() >= since);
    listed.push(...recent);
    path = recent.length === page.length ? (answer.links.next ?? null) : null;
  }
  return read ?? "hidden";
}

/** The attempts, newest first, at each delivery that the inbox does not have, or has and could not apply. */
async function findMissing(ctx: Context, hook: Hook, byGuid: Map<string, SentDelivery[]>): Promise<SentDelivery[][]> {
  // What the App's hook was to tell may as well have come from any other.
  const from = hook.hookId === APP_HOOK ? null : hook.hookId;
  const known = new Set(await arrivedFrom(ctx, from, [...byGuid.keys()], { isSound: true }));
  return [...byGuid]
    .filter(([guid, [newest]]) => !known.has(guid) && newest?.event !== "ping")
    .map(([, attempts]) => attempts);
}
