import { eq } from "drizzle-orm";
import type { Queries } from "../../../db/database.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import { hookSecret } from "../../config/hook-secrets.ts";
import { MIRROR_PARTS, type MirrorPart } from "../../config/parts.ts";
import type { Context } from "../../context.ts";
import { hookSubscriptions } from "../../schema.ts";
import { placeRepositoryHook } from "../../upstream/hooks/hooks.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import { eventsForApps, eventsOfPart, HOOK_EVENTS, LATER_EVENTS } from "../events/followed.ts";
import { eachAlone } from "../problems/isolated.ts";

const EVERYTHING = "*";

/** The events that targets want of a repository `r`: targets of its own, of its owner, and of everything. */
const WANTED_OF_R: SQL = sql`array(select distinct e from targets t, unnest(t.events) e where t.active and (t.scope = 'everything'
  or (t.scope = 'repository' and t.scope_id = r.id) or (t.scope = 'organization' and t.scope_id = r.owner_id)) order by e)`;

/** The events that a hook has to send: those that the mirror follows, and those that targets want beside them. Pure. */
function unionOf(parts: readonly MirrorPart[], targets: readonly string[], eventsOf = eventsOfPart): string[] {
  if (targets.includes(EVERYTHING)) return [EVERYTHING];
  return [...new Set([...HOOK_EVENTS, ...parts.flatMap(eventsOf), ...targets])];
}

interface Wanting {
  mirrors: MirrorPart[];
  targets: string[];
}

/**
 * The events that the hook of a repository is to send, or that of the App (null), by what is mirrored and what targets
 * want.
 */
export async function wantedEvents({ db }: { db: Queries }, fullName: string | null): Promise<string[]> {
  const rows = await db.query<Wanting>(sql`
    select s.mirrors, ${WANTED_OF_R} as targets from repository_syncs s join repositories r on r.id = s.repository_id
      where ${MIRRORED} and (${fullName}::text is null or folded(r.full_name) = folded(${fullName}))`);
  const targets = rows.flatMap((row) => row.targets);
  return unionOf(
    rows.flatMap(({ mirrors }) => mirrors),
    // An App has to name each of its events on its page.
    fullName === null ? targets.filter((event) => event !== EVERYTHING) : targets,
    fullName === null ? eventsForApps : eventsOfPart,
  );
}

/** The events that a hook of ours at upstream was last set to send. */
export interface Subscription {
  repositoryId: number;
  url: string;
  events: readonly string[];
}

/** Call it once upstream has accepted the hook. */
export async function noteSubscription(
  { db, clock }: Pick<Context, "db" | "clock">,
  { repositoryId, url, events }: Subscription,
): Promise<void> {
  const noted = { url, events: [...events], askedAt: clock.now() };
  await db
    .insert(hookSubscriptions)
    .values({ repositoryId, ...noted })
    .onConflictDoUpdate({ target: hookSubscriptions.repositoryId, set: noted });
}

/** Forgets our hook, which we deleted ourselves, so that nothing registers it again. */
export async function forgetSubscription({ db }: Pick<Context, "db">, repositoryId: number): Promise<void> {
  await db.delete(hookSubscriptions).where(eq(hookSubscriptions.repositoryId, repositoryId));
}

interface Moved extends Subscription {
  fullName: string;
  wanted: string[];
}

const COMPARED_AT_ONCE = 1_000;

/** The hooks to change. Those that were set longest ago come first. */
async function findMoved({ db }: Pick<Context, "db">): Promise<Moved[]> {
  const moved: Moved[] = [];
  let last: { askedAt: string; repositoryId: number } | undefined;
  for (;;) {
    const behind = last
      ? sql`(h.asked_at, h.repository_id) > (${last.askedAt}::timestamptz, ${last.repositoryId}::bigint)`
      : sql`true`;
    // As text: a Date would round the microseconds off.
    const rows = await db.query<Omit<Moved, "wanted"> & Wanting & { askedAt: string }>(sql`
      select h.repository_id as "repositoryId", h.url, h.events, r.full_name as "fullName", s.mirrors,
          h.asked_at::text as "askedAt", ${WANTED_OF_R} as targets
        from hook_subscriptions h join repository_syncs s using (repository_id) join repositories r on r.id = h.repository_id
        where ${MIRRORED} and ${behind} order by h.asked_at, h.repository_id limit ${COMPARED_AT_ONCE}`);
    for (const { mirrors, targets, askedAt: _, ...row } of rows) {
      const wanted = unionOf(mirrors, targets);
      if (new Set(row.events).symmetricDifference(new Set(wanted)).size > 0) moved.push({ ...row, wanted });
    }
    if (rows.length < COMPARED_AT_ONCE) return moved;
    last = rows.at(-1);
  }
}

/**
 * Widens and narrows the hooks that we registered at upstream to what the mirror and the targets want now. A hook that
 * upstream refuses keeps its problem, is tried again later, and delays no other. Answers how many were changed.
 * @throws QuotaSpentError, CredentialRejectedError at the end, when some have to wait
 */
export async function moveSubscriptions(ctx: Context, signal?: AbortSignal): Promise<number> {
  let changed = 0;
  const waiting = await eachAlone(ctx, await findMoved(ctx), {
    subjectOf: ({ repositoryId }) => ({ task: "hook", key: `${repositoryId}/events`, repositoryId }),
    signal,
    work: async ({ repositoryId, fullName, url, wanted }) => {
      const secret = hookSecret(ctx.config.webhookSecrets[0] ?? "", { type: "repository", id: repositoryId });
      await placeSubscribed(ctx, { repository: { id: repositoryId, fullName }, url, secret, events: wanted });
      await noteSubscription(ctx, { repositoryId, url, events: wanted });
      changed += 1;
    },
  });
  if (waiting) throw waiting;
  return changed;
}

/**
 * Makes the repository's hook at upstream send these events. Targets may want events that upstream does not know, or
 * has for organisations alone. Then the hook sends all events, so that one unknown event does not block the others.
 * @throws UpstreamRefusedError as `placeRepositoryHook` does
 */
export async function placeSubscribed(
  { upstream }: Pick<Context, "upstream">,
  hook: Parameters<typeof placeRepositoryHook>[1],
): Promise<{ id: number; path: string }> {
  try {
    return await placeRepositoryHook(upstream, hook);
  } catch (error) {
    const isOwn = hook.events.every((event) => OWN_EVENTS.has(event));
    if (!(error instanceof UpstreamRefusedError) || error.status !== 422) throw error;
    const events = isOwn ? hook.events.filter((event) => !LATER_EVENTS.has(event)) : [EVERYTHING];
    if (events.length === hook.events.length) throw error;
    return await placeRepositoryHook(upstream, { ...hook, events });
  }
}

const OWN_EVENTS: ReadonlySet<string> = new Set([EVERYTHING, ...HOOK_EVENTS, ...MIRROR_PARTS.flatMap(eventsOfPart)]);
