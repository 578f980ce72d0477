import { whileSilent, withPatience } from "../../operations/redis.ts";
import type { Stores } from "../../stores.ts";
import { type KnownCredential, loadCredentials } from "../credentials/credentials.ts";
import { FLOORS, leftOf } from "./bucket.ts";
import { BudgetKeys } from "./shared-budget.ts";

export interface QuotaReport {
  /** The token's fingerprint, or `installation-ID`. */
  credential: string;
  /** In words: `token 1a2b…` or `installation on octo`. */
  name: string;
  /** Fingerprints of the same user's other tokens, which share the quota. */
  sharedWith: string[];
  bucket: string;
  /** Null: no answer has shown it yet, or the window is over. */
  limit: number | null;
  remaining: number | null;
  resetAt: Date | null;
  /** How much a first copy may take of this window and of each later one, after its floor and QUOTA_SHARE. */
  copying: { left: number; perWindow: number } | null;
  /** Upstream asked for silence until then. */
  blockedUntil: Date | null;
  /** Upstream rejects it; it is not tried before then. */
  rejectedUntil: Date | null;
  /** When upstream first rejected it, since it last accepted it. */
  rejectedSince: Date | null;
  /**
   * Why the credential cannot be used, and what to do; null: it can. A rejected one cannot until upstream accepts it
   * again.
   */
  problem: string | null;
}

/**
 * Reports the quota for `/-/status`: each credential with each bucket that we use. While Redis does not answer, the
 * figures are null, since the status has to be readable just then. The tokens of one user are reported once.
 */
export async function quotaReport(ctx: Pick<Stores, "config" | "db" | "redis" | "clock">): Promise<QuotaReport[]> {
  const now = ctx.clock.now().getTime();
  const keys = new BudgetKeys(ctx.config);
  const later = (value: string | undefined) => (Number(value ?? 0) > now ? new Date(Number(value)) : null);
  const unknown: Record<string, string> = {};
  const read = (key: string) => withPatience(ctx.redis, () => ctx.redis.hgetall(key)).catch(whileSilent(unknown));
  const reportOf = async (each: KnownCredential, others: KnownCredential[], bucket: string): Promise<QuotaReport> => {
    const [own, token, state] = await Promise.all(
      [keys.credential(each.id), keys.credential(each.ledger), keys.bucket(each.ledger, bucket)].map(read),
    );
    const resetAt = later(state?.resetAt);
    const rejection = own?.rejectedUntil === undefined ? null : own.rejection || REJECTED_TOKEN;
    const problem = each.problem ?? rejection;
    return {
      credential: each.id,
      name: each.name,
      sharedWith: others.map(({ id }) => id),
      bucket,
      limit: resetAt && Number(state?.limit),
      remaining: resetAt && Number(state?.remaining),
      resetAt,
      copying: resetAt && problem === null ? copyingOf(state ?? {}, ctx.config.quotaShare) : null,
      blockedUntil: later(token?.blockedUntil),
      rejectedUntil: later(own?.rejectedUntil),
      rejectedSince: rejection !== null && own?.rejectedSince ? new Date(Number(own.rejectedSince)) : null,
      problem,
    };
  };
  const known = await loadCredentials(ctx);
  const rows = [...Map.groupBy(known, ({ ledger }) => ledger).values()].flatMap((sharing) =>
    sharing.flatMap(async (each, index) => {
      const others = sharing.filter((other) => other !== each);
      const reports = await Promise.all(["core", "graphql", "search"].map((bucket) => reportOf(each, others, bucket)));
      // A user's second token is reported only if it is rejected.
      return index === 0
        ? reports
        : reports
            .filter(({ problem }) => problem !== null)
            .slice(0, 1)
            .map(withoutShared);
    }),
  );
  return (await Promise.all(rows)).flat();
}

const REJECTED_TOKEN =
  "upstream rejects it: it is revoked, expired or wrong; put a valid one in its place in UPSTREAM_TOKEN and restart";

/** Without the figures that are reported with another token of the same user. */
function withoutShared(report: QuotaReport): QuotaReport {
  return { ...report, limit: null, remaining: null, resetAt: null, copying: null };
}

function copyingOf(state: Record<string, string>, share: number): QuotaReport["copying"] {
  const [limit, remaining, spent] = [Number(state.limit), Number(state.remaining), Number(state.spent ?? 0)];
  const known = { limit, reset: 0, resetAt: 0 };
  return {
    left: leftOf({ ...known, remaining, spent }, FLOORS.backfill, share),
    perWindow: leftOf({ ...known, remaining: limit, spent: 0 }, FLOORS.backfill, share),
  };
}
