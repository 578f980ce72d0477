import { MIRRORED } from "../../db/schema/states.ts";
import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { MADE_HOOK } from "../inbox/inbox.ts";

/** The state of a repository's webhook, as far as it is known without asking upstream. */
export interface HookState {
  /** `owner/name` */
  repository: string;
  /** Upstream's id of the hook. Null: upstream shows no hook of ours, or was not asked yet. */
  hookId: number | null;
  /** Up to when upstream's list of deliveries was compared with the inbox; null: never. */
  checkedUntil: Date | null;
  /** How many deliveries were missing, over all checks. Upstream was asked to send them again. */
  missed: number;
  /** When the hook's newest delivery was received. */
  deliveredAt: Date | null;
  /** Why the hook cannot be checked, in words. */
  problem: string | null;
}

/** The hook of each mirrored repository. An App's webhook is listed with each repository that it serves. */
export async function hooksAsTheyStand({ db }: Pick<Context, "db">): Promise<HookState[]> {
  return await db.query(sql`
    select r.full_name as repository, nullif(h.hook_id, 0) as "hookId", h.checked_until as "checkedUntil",
        coalesce(h.missed, 0) as missed, d.received_at as "deliveredAt", p.problem
      from repository_syncs s join repositories r on r.id = s.repository_id
      left join lateral (select hook_id, checked_until, missed from hook_checks where repository_id = s.repository_id
        order by checked_until desc limit 1) h on true
      left join lateral (select received_at from deliveries where repository_id = s.repository_id
          and hook_id <> ${MADE_HOOK} order by received_at desc limit 1) d on true
      left join lateral (select problem from problems where task = 'hook' and repository_id = s.repository_id
        order by failed_at desc limit 1) p on true
      where ${MIRRORED} order by folded(r.full_name)`);
}
