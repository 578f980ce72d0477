import { type SQL, sql } from "../../../db/sql.ts";
import type { MirrorPart } from "../../config/parts.ts";
import type { Context } from "../../context.ts";
import { MADE_HOOK } from "../../inbox/inbox.ts";
import { eventsOfPart } from "../events/followed.ts";
import { NO_HOOK } from "./sent.ts";

/** A check of deliveries is believed for this many intervals. */
const CHECK_INTERVALS = 3;
/** A delivery that arrived this shortly before may not have been applied. */
const APPLIED_WITHIN_MS = 60_000;

/** How often upstream is asked whether a webhook was lost. */
const LOSSES_EVERY_MS = 60 * 60_000;
/** How often if no delivery about the repository has arrived since, and none was lost. */
const UNTOLD_EVERY_MS = 24 * 3_600_000;

/**
 * Whether upstream has to be asked again to confirm what webhooks tell of these parts. `confirmedAt`: when it did so
 * last, a column of the row `s` of `repository_syncs`.
 */
export function isDueSince(
  ctx: Pick<Context, "clock" | "config">,
  confirmedAt: SQL,
  parts: readonly MirrorPart[],
): SQL {
  const before = (ms: number) => new Date(ctx.clock.now().getTime() - ms);
  return sql`(${confirmedAt} is null or ${confirmedAt} <= ${before(UNTOLD_EVERY_MS)}
    or (${confirmedAt} <= ${before(LOSSES_EVERY_MS)} and not ${toldNothingSince(ctx, confirmedAt, parts)}))`;
}

/**
 * Whether upstream has told nothing about the repository since `at`, and its own list of deliveries proves that there
 * was nothing to tell. The repository is a row `s` of `repository_syncs`. It takes a hook that we registered, that
 * sends everything these parts need, and whose deliveries are regularly compared with the inbox. A delivery that
 * upstream lost before it listed it stays unknown.
 */
function toldNothingSince(
  { clock, config }: Pick<Context, "clock" | "config">,
  at: SQL,
  parts: readonly MirrorPart[],
): SQL {
  const checkedAfter = new Date(clock.now().getTime() - CHECK_INTERVALS * config.deliveryCheckIntervalMs);
  const sendsAll = sql.and(
    parts.map(
      (part) => sql`(not ${part} = any(s.mirrors) or u.events @> array['*']
        or u.events @> ${[...eventsOfPart(part)]}::text[])`,
    ),
  );
  const ofHook = (number: SQL) => sql`hook_checks h where h.repository_id = s.repository_id and h.hook_id ${number}`;
  return sql`(exists (select from hook_subscriptions u where u.repository_id = s.repository_id and u.asked_at < ${at} and ${sendsAll})
    and exists (select from ${ofHook(sql`<> ${NO_HOOK}`)} and h.asked_at > ${checkedAfter})
    and not exists (select from ${ofHook(sql`= ${NO_HOOK}`)} and h.checked_until > ${at})
    and not exists (select from problems p where p.task = 'hook' and p.repository_id = s.repository_id)
    and exists (select from sweeps w where w.repository_id = s.repository_id and (w.untold_at is null or w.untold_at < ${at}))
    and not exists (select from deliveries d where d.repository_id = s.repository_id and d.hook_id <> ${MADE_HOOK}
      and d.received_at > ${at} - make_interval(secs => ${APPLIED_WITHIN_MS / 1_000})))`;
}
