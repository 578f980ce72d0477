import type { Context } from "../../context.ts";
import { arrivedFrom } from "../../inbox/arrivals.ts";
import { requireList } from "../../mirror/store/observation.ts";
import { type SentDelivery, sentDeliveries } from "../../upstream/hooks/hooks.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import type { ReadAnswer, Validator } from "../../upstream/protocol/upstream.ts";

/** A delivery that is younger may still be on its way. */
export const SETTLED_MS = 60_000;
/**
 * Each check begins this long before the end of the last one, since upstream lists a delivery only after its first
 * attempt.
 */
const CHECK_OVERLAP_MS = 5 * 60_000;
/** GitHub docs: deliveries are listed, and can be sent again, for three days. */
export const LISTED_MS = 3 * 24 * 3_600_000;
/**
 * Beyond this many missing deliveries, only their repositories are kept: catch-ups cost less than so many redeliveries.
 */
const MAX_KEPT = 1_000;
/** Deliveries further back, as after a busy weekend of an App, are left to catch-ups of all repositories. */
const MAX_PAGES = 200;

/** Stands for the repository and for the hook of the App's webhook, which serves all repositories of the App. */
export const APP_HOOK = 0;

/** Stands in `hook_checks` for: upstream shows us no hook of ours here, and we may not be allowed to see any. */
export const NO_HOOK = 0;

export interface Hook {
  repositoryId: number;
  hookId: number;
  /** Upstream's list of its deliveries. */
  list: string;
  /** By upstream's clock; null: never checked. */
  checkedUntil: Date | null;
  /**
   * Deliveries of it have arrived lately, so its list has changed, and reading it is not free. Then only
   * those are asked for that did not arrive, by upstream's own account. Mostly there are none, and that is free.
   */
  isLively: boolean;
}

/** The deliveries that upstream sent and the inbox lacks. */
export interface MissingDeliveries {
  /** The attempts at each delivery, newest first; at most `MAX_KEPT` deliveries. */
  attempts: SentDelivery[][];
  /** Attempts beyond `MAX_KEPT`, and the repositories that they name. */
  beyond: { count: number; named: Set<number> };
  upstreamNow: Date;
  /** No delivery can still be on its way. */
  isSettled: boolean;
  /** Of the list's first page. */
  validator: Validator | null;
  /** Upstream does not list all that it sent since the last check, or too much to read. */
  isTooOld: boolean;
}

/**
 * Reads upstream's list of deliveries down to the last check, a page in memory at a time. "unchanged": all of it was in the
 * inbox. "hidden": the hook is gone, or the token may not see it.
 */
export async function readMissing(ctx: Context, hook: Hook): Promise<MissingDeliveries | "unchanged" | "hidden"> {
  const missing = new Map<string, SentDelivery[]>();
  const beyond = { count: 0, named: new Set<number>() };
  let read: MissingDeliveries | null = null;
  let path: string | null = `${hook.list}?per_page=100${hook.isLively ? "&status=failure" : ""}`;
  for (let page = 0; path !== null; page++) {
    if (read && page === MAX_PAGES) return { ...read, attempts: [...missing.values()], isTooOld: true };
    const answer: ReadAnswer | null = await askOrNull(ctx, path, read === null);
    if (answer?.kind === "unchanged") return "unchanged";
    if (answer?.kind !== "ok") return "hidden";
    const { upstreamNow, validator } = answer;
    const sinceCheck = upstreamNow.getTime() - (hook.checkedUntil?.getTime() ?? 0);
    // A check that ended later than it is now was dated by a clock that ran ahead, and says nothing.
    const readMs = sinceCheck < 0 ? LISTED_MS : Math.min(sinceCheck, LISTED_MS);
    const since = upstreamNow.getTime() - readMs - CHECK_OVERLAP_MS;
    const isTooOld = hook.checkedUntil !== null && sinceCheck > LISTED_MS;
    read ??= { attempts: [], beyond, upstreamNow, isSettled: true, validator, isTooOld };
    const listed = sentDeliveries(requireList(path, answer.body));
    // A delivery that is dated by no time, or by one that has not come, is neither old nor young.
    const recent = listed.filter(({ deliveredAt }) => !(deliveredAt.getTime() < since));
    const sentAt = read.upstreamNow.getTime();
    const isYoung = (at: number) => at > sentAt - SETTLED_MS && at <= sentAt + SETTLED_MS;
    const settled = recent.filter(({ deliveredAt }) => !isYoung(deliveredAt.getTime()));
    if (settled.length < recent.length) read.isSettled = false;
    for (const attempt of await withoutArrived(ctx, hook, settled)) {
      const earlier = missing.get(attempt.guid);
      if (earlier) earlier.push(attempt);
      else if (missing.size < MAX_KEPT) missing.set(attempt.guid, [attempt]);
      else {
        beyond.count += 1;
        if (attempt.repositoryId !== null) beyond.named.add(attempt.repositoryId);
      }
    }
    path = recent.length === listed.length ? (answer.links.next ?? null) : null;
  }
  return read ? { ...read, attempts: [...missing.values()] } : "hidden";
}

/** The attempts at deliveries that the inbox lacks or could not apply. */
async function withoutArrived(ctx: Context, hook: Hook, sent: readonly SentDelivery[]): Promise<SentDelivery[]> {
  // A delivery of the App's hook counts as arrived from any hook.
  const from = hook.hookId === APP_HOOK ? null : hook.hookId;
  const guids = [...new Set(sent.map(({ guid }) => guid))];
  const known = new Set(await arrivedFrom(ctx, from, guids, { isSound: true }));
  return sent.filter(({ guid, event }) => !known.has(guid) && event !== "ping");
}

/** null: the token may not see hooks, which leaves the sweep to find what was missed. */
export async function askOrNull(
  ctx: Pick<Context, "upstream">,
  path: string,
  conditional: boolean,
): Promise<ReadAnswer | null> {
  try {
    return await ctx.upstream.get(path, { priority: "catch-up", conditional });
  } catch (error) {
    if (error instanceof UpstreamRefusedError) return null;
    throw error;
  }
}
