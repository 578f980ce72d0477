import { and, eq, gt } from "drizzle-orm";
import { alone } from "../../../db/alone.ts";
import { among, type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { MADE_HOOK } from "../../inbox/inbox.ts";
import { requireList } from "../../mirror/store/observation.ts";
import type { Shard } from "../../queues/jobs.ts";
import { enqueueCatchUps } from "../../queues/queues.ts";
import { hookChecks, installationRepositories, installations, repositorySyncs, upkeep } from "../../schema.ts";
import { saveValidator } from "../../upstream/conditional/validators.ts";
import { APP_DELIVERIES } from "../../upstream/hooks/app-hook.ts";
import { askToResend, hookAt, type SentDelivery } from "../../upstream/hooks/hooks.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import { DELIVERY_ATTEMPTS, RETRIES } from "../../waits/retries.ts";
import { suspect } from "../catch-up/sweep-due.ts";
import { credentialGroups } from "../problems/groups.ts";
import { eachAlone } from "../problems/isolated.ts";
import { isInShard, WHOLE } from "../turns/shards.ts";
import { APP_HOOK, askOrNull, type Hook, LISTED_MS, NO_HOOK, readMissing, SETTLED_MS } from "./sent.ts";

/** A catch-up replaces further redeliveries, since it costs less: upstream takes one write a second. */
const MAX_ASKED = 30;

/**
 * A delivery may be committed this long after its receipt. One that waits longer, in Redis, may be overlooked; the next
 * delivery of its hook makes the hook known.
 */
const COMMITTED_MS = 5 * 60_000;

export interface CheckedDeliveries {
  /** Deliveries that the inbox lacks. */
  missed: number;
  /** How many of them upstream was asked to send again. */
  asked: number;
}

interface Checking {
  signal?: AbortSignal;
  /** Whose repositories' hooks are checked. */
  shard?: Shard;
}

/** A hook, or a repository whose hook is still to be found. */
interface Open {
  repositoryId: number;
  hookId: number | null;
  checkedUntil: Date | null;
  isLively: boolean;
}

/**
 * Compares, for the shard, upstream's list of what it sent to our webhooks with the inbox, and asks again for what is missing. It asks
 * for each delivery, or for a catch-up if a redelivery cannot help. The longest neglected hook comes first, so a check that
 * the quota ends goes on there. A hook that fails delays no other.
 * @throws QuotaSpentError, CredentialRejectedError at the end, when some have to wait
 */
export async function checkDeliveries(ctx: Context, asked: Checking = {}): Promise<CheckedDeliveries> {
  const { shard = WHOLE, signal } = asked;
  const name = `check of deliveries ${shard.at} of ${shard.of}`;
  const checked = await alone(ctx, name, (running) => checkHooks(ctx, shard, running), { signal });
  return checked ?? { missed: 0, asked: 0 };
}

async function checkHooks(ctx: Context, shard: Shard, signal: AbortSignal | undefined): Promise<CheckedDeliveries> {
  const total = { missed: 0, asked: 0 };
  // The first shard also does the App's hook, and all that is for all repositories.
  const ofAll = shard.at === 0 ? await findAppHook(ctx) : [];
  if (shard.at === 0) await noteHooks(ctx);
  const open = [...ofAll, ...(await findOpen(ctx, shard))];
  const groupOf = await credentialGroups(
    ctx,
    open.map(({ repositoryId }) => repositoryId).filter((id) => id !== APP_HOOK),
  );
  const waiting = await eachAlone(ctx, open, {
    subjectOf: ({ repositoryId, hookId }) => ({
      task: "hook",
      key: `${repositoryId}/${hookId ?? "?"}`,
      repositoryId: repositoryId === APP_HOOK ? null : repositoryId,
    }),
    groupOf: ({ repositoryId }) => (repositoryId === APP_HOOK ? "app" : groupOf(repositoryId)),
    signal,
    work: (one) => checkOne(ctx, one),
    store: async (done, failed) => {
      for (const { value } of done) {
        total.missed += value.missed;
        total.asked += value.asked;
      }
      const asked = [...done.map(({ item }) => item), ...failed].map(({ repositoryId }) => repositoryId);
      await ctx.db.update(hookChecks).set({ askedAt: ctx.clock.now() }).where(among(hookChecks.repositoryId, asked));
    },
  });
  if (total.missed > 0) ctx.log.warn(total, "Webhooks were missed");
  if (waiting) throw waiting;
  return total;
}

/** The App's webhook; none without an App. */
async function findAppHook(ctx: Context): Promise<Open[]> {
  if (ctx.config.appId === null) return [];
  const [row] = await ctx.db.query<{ checkedUntil: Date; isLively: boolean }>(
    sql`select checked_until as "checkedUntil", ${IS_APP_LIVELY} as "isLively" from hook_checks c
      where repository_id = ${APP_HOOK} and hook_id = ${APP_HOOK}`,
  );
  return [{ repositoryId: APP_HOOK, hookId: APP_HOOK, checkedUntil: null, isLively: false, ...row }];
}

/** So long after its last delivery a hook's whole list is worth a request: from then on it is free. */
const LIVELY_MS = 30 * 60_000;

/** Whether the hook of the row `c` of `hook_checks` has delivered something lately. */
function isLively({ clock }: Pick<Context, "clock">): SQL {
  const since = new Date(clock.now().getTime() - LIVELY_MS);
  return sql`coalesce((select true from deliveries d where d.repository_id = c.repository_id
    and d.received_at > ${since} and d.hook_id = c.hook_id order by d.received_at limit 1), false)`;
}

/** Whether the App's hook, which serves all repositories, has delivered something since it was last checked. */
const IS_APP_LIVELY = sql`coalesce((select true from deliveries d where d.received_at > c.asked_at
  and d.hook_id <> ${MADE_HOOK} order by d.received_at limit 1), false)`;

/** A hook is ours if we know its deliveries or it has our address. The App's repositories need none. */
async function findOpen(ctx: Context, shard: Shard): Promise<Open[]> {
  type Row = { repository_id: number; hook_id: number | null; checked_until: Date | null; isLively: boolean };
  const rows = await ctx.db.query<Row>(sql`
    select s.repository_id, c.hook_id, c.checked_until,
        c.checked_until is not null and ${isLively(ctx)} as "isLively" from repository_syncs s
      left join hook_checks c on c.repository_id = s.repository_id and ${isInShard(sql`c.repository_id`, shard)}
      where ${isInShard(sql`s.repository_id`, shard)} and s.state = 'live' and not (${ctx.config.appId !== null}::boolean and exists (select from installation_repositories i
        where i.repository_id = s.repository_id and i.page > 0)) order by c.asked_at nulls first, s.repository_id, c.hook_id`);
  const lookAgainBefore = ctx.clock.now().getTime() - RETRIES.unknownHook.firstMs;
  return [...Map.groupBy(rows, (row) => row.repository_id)].flatMap(([repositoryId, known]): Open[] => {
    const looked = known.find(({ hook_id }) => hook_id === NO_HOOK)?.checked_until;
    if (looked && looked.getTime() > lookAgainBefore) return [];
    const named = known.flatMap(({ hook_id: hookId, checked_until: checkedUntil, isLively }) =>
      hookId === null || hookId === NO_HOOK ? [] : [{ repositoryId, hookId, checkedUntil, isLively }],
    );
    return named.length > 0 ? named : [{ repositoryId, hookId: null, checkedUntil: null, isLively: false }];
  });
}

/** A hook is known from its first delivery on. Reads what arrived since this last looked. */
async function noteHooks(ctx: Context): Promise<void> {
  const now = ctx.clock.now();
  await ctx.db.transaction(async (tx) => {
    const [looked] = await tx
      .select({ until: upkeep.doneUntil })
      .from(upkeep)
      .where(eq(upkeep.task, "hooks"))
      .for("update");
    const since = looked ? looked.until.getTime() - COMMITTED_MS : now.getTime() - LISTED_MS;
    await tx.query(sql`
      insert into hook_checks (repository_id, hook_id)
        select distinct d.repository_id, d.hook_id from deliveries d join repository_syncs using (repository_id)
          where d.received_at > ${new Date(since)} and d.hook_id not in (${NO_HOOK}, ${MADE_HOOK})
            -- Of other holders' hooks a repository's list shows none.
            and d.signer_type is distinct from 'organization' and d.signer_type is distinct from 'integration'
        on conflict (repository_id, hook_id) do nothing`);
    await tx
      .insert(upkeep)
      .values({ task: "hooks", doneUntil: now })
      .onConflictDoUpdate({ target: upkeep.task, set: { doneUntil: now } });
  });
}

/** To ask in vain costs a request each time, for each repository. */
async function rememberNoHook(ctx: Context, repositoryId: number): Promise<void> {
  const checkedUntil = ctx.clock.now();
  await ctx.db
    .insert(hookChecks)
    .values({ repositoryId, hookId: NO_HOOK, checkedUntil })
    .onConflictDoUpdate({ target: [hookChecks.repositoryId, hookChecks.hookId], set: { checkedUntil } });
}

/** A hook that never reached us is known by its address. Null: none has ours, or we may not see the hooks. */
async function findByAddress(ctx: Context, repositoryId: number): Promise<number | null> {
  if (ctx.config.publicUrl === null) return null;
  const url = `${ctx.config.publicUrl}/webhooks`;
  const path = `/repositories/${repositoryId}/hooks?per_page=100`;
  const answer = await askOrNull(ctx, path, false);
  return answer?.kind === "ok" ? hookAt(requireList(path, answer.body), url) : null;
}

async function checkOne(ctx: Context, open: Open): Promise<CheckedDeliveries> {
  const { repositoryId, hookId, ...known } = open;
  const id = hookId ?? (await findByAddress(ctx, repositoryId));
  const list = repositoryId === APP_HOOK ? APP_DELIVERIES : `/repositories/${repositoryId}/hooks/${id}/deliveries`;
  const checked = id === null ? "hidden" : await checkSent(ctx, { repositoryId, hookId: id, list, ...known });
  // From now on only what did not arrive is asked for, which is free once it was asked for while there was none.
  if (id !== null && checked !== "hidden" && checked.missed === 0 && known.checkedUntil === null)
    await checkSent(ctx, { repositoryId, hookId: id, list, checkedUntil: null, isLively: true });
  if (checked !== "hidden") return checked;
  if (repositoryId !== APP_HOOK) await rememberNoHook(ctx, repositoryId);
  return { missed: 0, asked: 0 };
}

async function checkSent(ctx: Context, hook: Hook): Promise<CheckedDeliveries | "hidden"> {
  const read = await readMissing(ctx, hook);
  if (read === "hidden") return "hidden";
  if (read === "unchanged") return { missed: 0, asked: 0 };
  const { attempts, beyond, upstreamNow, isSettled, validator, isTooOld } = read;
  const hopeful = attempts.filter((tries) => tries.length < DELIVERY_ATTEMPTS).slice(0, MAX_ASKED);
  const asked = await askForMissed(ctx, hook, hopeful);
  const hopeless = attempts.filter((tries) => !asked.has(tries));
  const named = new Set([...namedIn(hopeless), ...beyond.named]);
  const isLost = hopeless.length + beyond.count > 0;
  await enqueueCatchUps(ctx, await concerned(ctx, hook, isTooOld ? "all" : named, isLost));

  const missed = attempts.length + beyond.count;
  const until = new Date(upstreamNow.getTime() - SETTLED_MS);
  await ctx.db.transaction(async (tx) => {
    await tx
      .insert(hookChecks)
      .values({ repositoryId: hook.repositoryId, hookId: hook.hookId, checkedUntil: until, missed })
      .onConflictDoUpdate({
        target: [hookChecks.repositoryId, hookChecks.hookId],
        set: {
          // A check whose clock ran ahead counts as of now.
          checkedUntil: sql`case when ${hookChecks.checkedUntil} <= ${upstreamNow}
            then greatest(${hookChecks.checkedUntil}, ${until}) else ${until} end`,
          missed: sql`${hookChecks.missed} + ${missed}`,
        },
      });
    const untold =
      hook.repositoryId === APP_HOOK
        ? [...new Set([...namedIn(attempts), ...beyond.named])]
        : missed > 0
          ? [hook.repositoryId]
          : [];
    if (untold.length > 0) await suspect(tx, untold, ctx.clock.now());
    // Installations are read from upstream at the next look, even if the missing delivery does not come again.
    const isOfInstallations = attempts.some(([newest]) => newest?.event.startsWith("installation")) || beyond.count > 0;
    if (hook.repositoryId === APP_HOOK && isOfInstallations) await tx.update(installations).set({ listedAt: null });
    // A stored validator would turn the next read into a 304, so none is stored while a delivery is missing or on its
    // way.
    if (isSettled && missed === 0 && validator) await saveValidator(tx, validator);
  });
  return { missed, asked: asked.size };
}

/**
 * Answers which deliveries upstream will send again. A token may be allowed to see deliveries and not to ask for them.
 */
async function askForMissed(ctx: Context, { list }: Hook, missing: SentDelivery[][]): Promise<Set<SentDelivery[]>> {
  const asked = new Set<SentDelivery[]>();
  try {
    for (const tries of missing) {
      const [newest] = tries;
      if (newest) await askToResend(ctx.upstream, list, newest);
      asked.add(tries);
    }
  } catch (error) {
    if (!(error instanceof UpstreamRefusedError)) throw error;
    ctx.log.info({ list, reason: error.message }, "Upstream does not send deliveries again; it is read instead");
  }
  return asked;
}

/** Which repositories the deliveries are of. */
function namedIn(missing: readonly SentDelivery[][]): number[] {
  return missing.flatMap(([newest]) => newest?.repositoryId ?? []);
}

/** Which mirrored repositories have to be read instead. */
async function concerned(
  ctx: Context,
  hook: Hook,
  named: ReadonlySet<number> | "all",
  isLost: boolean,
): Promise<number[]> {
  if (hook.repositoryId !== APP_HOOK) return named === "all" || isLost ? [hook.repositoryId] : [];
  const isConcerned = named === "all" ? undefined : among(repositorySyncs.repositoryId, [...named]);
  const rows = await ctx.db
    .select({ id: repositorySyncs.repositoryId })
    .from(repositorySyncs)
    .innerJoin(installationRepositories, eq(installationRepositories.repositoryId, repositorySyncs.repositoryId))
    .where(and(eq(repositorySyncs.state, "live"), gt(installationRepositories.page, 0), isConcerned))
    .orderBy(repositorySyncs.repositoryId);
  return rows.map(({ id }) => id);
}
