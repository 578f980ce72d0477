import { type SQL, sql } from "../../../db/sql.ts";
import { IS_UNSURE } from "../../mirror/read/refs.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import { lockRefs, type RefKind } from "../../mirror/store/refs.ts";
import type { Whole } from "../wholes/whole.ts";
import { hearRefs } from "./heard.ts";
import { fetchAndStoreRefs } from "./read.ts";

/**
 * How often refs are read. Upstream sends no event for a push of more than three tags, nor for a rule that protects a
 * branch.
 */
const REFS_EVERY_MS = 60 * 60_000;

/** Whether the list of the row `l` of `ref_lists` has to be read again. An unchanged list costs nothing. */
function isRefListDue(now: Date): SQL {
  const lag = sql`${`${REPLICA_LAG_MS} milliseconds`}::interval`;
  return sql`(l.read_at is null or l.read_at <= ${new Date(now.getTime() - REFS_EVERY_MS)}
    or exists (select from refs f where f.repository_id = l.repository_id and f.kind = l.kind and ${IS_UNSURE}
      and f.told_at + ${lag} >= l.read_at and f.told_at + ${lag} < ${now}))`;
}

/** The branches and tags. */
export const refsWhole: Whole = {
  kind: "refs",
  parts: ["refs"],
  due: ({ clock }) => {
    const lists = sql`from ref_lists l where l.repository_id = r.id`;
    return {
      isDue: sql`(select count(*) ${lists} and not ${isRefListDue(clock.now())}) < 2`,
      confirmedAt: sql`(select min(l.read_at) ${lists})`,
    };
  },
  hear: hearRefs,
  read: async (ctx, { repository, now }) => {
    const { id } = repository;
    await ctx.db.transaction((tx) => lockRefs(tx, [id]));
    const due = await ctx.db.query<{ kind: RefKind }>(sql`
      select l.kind from ref_lists l where l.repository_id = ${id} and (${isRefListDue(now)}
        or exists (select from refs f where f.repository_id = l.repository_id and f.kind = l.kind and ${IS_UNSURE}))
        order by l.kind`);
    for (const { kind } of due) await fetchAndStoreRefs(ctx, repository, kind);
    const unsure = await ctx.db.count(sql`
      select from refs f where f.repository_id = ${id} and ${IS_UNSURE} limit 1`);
    return { isDone: unsure === 0 };
  },
};
