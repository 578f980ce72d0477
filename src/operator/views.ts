import { spenders } from "../api/callers/spenders.ts";
import { listApiTokens } from "../api/callers/tokens.ts";
import type { Context } from "../context.ts";
import { findListedTargets } from "../events/listed-targets.ts";
import { listSent } from "../events/sent.ts";
import { copiesEndedAt } from "../health/copies.ts";
import { forecast } from "../health/forecast.ts";
import { loadStatus } from "../health/status.ts";
import { HttpError } from "../http/errors.ts";
import { countTroubled, type DeliveryFilter, listDeliveriesShown } from "../inbox/deliveries.ts";
import { recentActivity } from "../operations/activity-table.ts";
import { readLives } from "../operations/heartbeat.ts";
import { whileSilent } from "../operations/redis.ts";
import { queueCounts } from "../queues/counts.ts";
import { listFailedJobs } from "../queues/failed.ts";
import { QueueUnavailableError } from "../queues/unavailable.ts";
import { listAudits } from "../sync/audit/list.ts";
import { quotaHistory } from "../upstream/quota/history.ts";
import { withOutlooks } from "../upstream/quota/outlook.ts";
import { quotaReport } from "../upstream/quota/report.ts";
import { findDeliveryWay } from "./delivery-way.ts";
import { hooksAsTheyStand } from "./hooks.ts";

const LISTED_UNASKED = 50;
const MOST_LISTED = 500;
const AUDITS = 200;
const SPENDERS = 60;
const FAILED_JOBS = 50;
/** A delivery that has waited longer than this is shown as overdue. `tain doctor` warns later. */
const SHOWN_OVERDUE_MS = 60_000;

type PageView = (ctx: Context, asked: URLSearchParams) => Promise<object>;

/** The page's views, by name. No view changes anything or asks upstream. */
export const VIEWS: Readonly<Record<string, PageView>> = {
  async home(ctx) {
    return { activity: await recentActivity(ctx) };
  },
  async fleet(ctx) {
    const before = new Date(ctx.clock.now().getTime() - SHOWN_OVERDUE_MS);
    const [{ repositories, ...status }, troubled] = await Promise.all([
      loadStatus(ctx, () => quotaReport(ctx), forecast),
      countTroubled(ctx, before),
    ]);
    return {
      ...status,
      // The lag is left out, because it grows each second. The page computes it, so that an otherwise unchanged answer
      // is a 304.
      repositories: repositories.map(({ lagSeconds: _, ...rest }) => rest),
      deliveries: troubled,
    };
  },
  async quota(ctx) {
    const [quota, history, spent, endedAt] = await Promise.all([
      quotaReport(ctx),
      quotaHistory(ctx),
      spenders(ctx, SPENDERS),
      copiesEndedAt(ctx),
    ]);
    return { quota: withOutlooks(quota, history, endedAt), history, spent, isCopying: endedAt === null };
  },
  async deliveries(ctx, asked) {
    return { deliveries: await listDeliveriesShown(ctx, filterOf(asked)) };
  },
  async delivery(ctx, asked) {
    return { way: await findDeliveryWay(ctx, asked.get("id") ?? "") };
  },
  async queues(ctx) {
    // Null: Redis does not answer, so nothing is known of them.
    const [processes, queues, failed] = await Promise.all([
      readLives(ctx).catch(whileSilent(null)),
      queueCounts(ctx).catch(whileAway),
      listFailedJobs(ctx, FAILED_JOBS).catch(whileAway),
    ]);
    return { processes, queues, failed };
  },
  async hooks(ctx) {
    return { hooks: await hooksAsTheyStand(ctx), publicUrl: ctx.config.publicUrl };
  },
  async targets(ctx) {
    return { targets: await findListedTargets(ctx) };
  },
  async sent(ctx, asked) {
    const target = Number(asked.get("target"));
    if (!Number.isSafeInteger(target)) throw new HttpError(400, "target is no number");
    const answered = asked.get("failed") === "1" ? "refused" : null;
    return { sent: await listSent(ctx, target, { limit: LISTED_UNASKED, answered }) };
  },
  async audits(ctx) {
    return { audits: await listAudits(ctx, AUDITS) };
  },
  async tokens(ctx) {
    return { tokens: await listApiTokens(ctx) };
  },
};

function whileAway(error: unknown): null {
  if (error instanceof QueueUnavailableError) return null;
  throw error;
}

/** @throws HttpError for an unknown status */
function filterOf(asked: URLSearchParams): DeliveryFilter {
  const given = (name: string) => asked.get(name)?.trim() || null;
  const [status, event, search] = [given("status"), given("event"), given("search")];
  const known = (["pending", "applied", "ignored", "failed"] as const).find((each) => each === status);
  if (status !== null && known === undefined) throw new HttpError(400, "There is no such status");
  const limit = Number(given("limit") ?? LISTED_UNASKED);
  return {
    ...(known === undefined ? {} : { status: known }),
    ...(event === null ? {} : { event }),
    ...(search === null ? {} : { search }),
    limit: Number.isSafeInteger(limit) ? Math.min(MOST_LISTED, Math.max(1, limit)) : LISTED_UNASKED,
  };
}
