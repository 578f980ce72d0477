import { alone } from "../../../db/alone.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { NAME_AGE_MS, type ReadNames, storeNames } from "../../mirror/store/names.ts";
import { isLacking, learnLack } from "../../mirror/store/upstream-lacks.ts";
import { EMAILS, NAMES_A_QUERY, type NamedAccount, namesQuestion } from "../../upstream/protocol/account-names.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import { isScopeLacking } from "../../upstream/protocol/wording.ts";
import { tryAlone } from "../problems/isolated.ts";
import type { Subject } from "../problems/problems.ts";
import { mayTakeMoment, type QuestionPace } from "../questions/paced.ts";

/**
 * The names of accounts. What embeds an account shows its login alone, and no event tells of a new name. So upstream is
 * asked once an account is first seen, and again every day, by a query that costs a point.
 */

/** A query that has room also asks for names that will be due within this time. So accounts that came singly meet. */
const SOON_MS = NAME_AGE_MS / 2;
/** So many queries share a moment of the pace. */
const QUERIES_AT_ONCE = 10;
/** New accounts come singly, and their queries have room for hundreds. Whoever has a webhook's secret may make up any number. */
const PACE: QuestionPace = { name: "names", everyMs: 180_000 };

const NAMES: Subject = { task: "names", key: "", repositoryId: null };

/** Reads the names that are due, in one process at a time. @throws QuotaSpentError, CredentialRejectedError */
export async function fetchAndStoreNames(ctx: Context, signal?: AbortSignal): Promise<void> {
  await alone(ctx, "names of accounts", (running) => tryAlone(ctx, NAMES, () => fetchAndStoreDue(ctx, running)), {
    signal,
  });
}

async function fetchAndStoreDue(ctx: Context, signal: AbortSignal): Promise<void> {
  const due = await findDue(ctx);
  if (due.length === 0 || !(await mayTakeMoment(ctx, PACE))) return;
  for (let start = 0; start < due.length && !signal.aborted; start += NAMES_A_QUERY) {
    const shown = await askNames(ctx, due.slice(start, start + NAMES_A_QUERY), signal);
    await ctx.db.transaction((tx) => storeNames(tx, shown));
  }
}

/** As many as fill the queries for those that are due now. What is due longest comes first. */
async function findDue({ db, clock }: Pick<Context, "db" | "clock">): Promise<NamedAccount[]> {
  const now = clock.now();
  const rows = await db.query<NamedAccount & { isDue: boolean }>(sql`
    select u.id, u.node_id as "nodeId", u.document -> 'name' is not null as "isKnown", a.due_at <= ${now} as "isDue"
      from account_names a join users u on u.id = a.user_id
      where a.due_at <= ${new Date(now.getTime() + SOON_MS)} and u.node_id is not null and u.deleted_at is null
      order by a.due_at, a.user_id limit ${QUERIES_AT_ONCE * NAMES_A_QUERY}`);
  const queries = Math.ceil(rows.filter(({ isDue }) => isDue).length / NAMES_A_QUERY);
  return rows.slice(0, queries * NAMES_A_QUERY);
}

async function askNames(ctx: Context, asked: readonly NamedAccount[], signal: AbortSignal): Promise<ReadNames> {
  const withEmails = !(await isLacking(ctx.db, EMAILS, ctx.clock.now()));
  const { document, variables, read } = namesQuestion(asked, { withEmails });
  try {
    const answer = await ctx.upstream.graphql(document, variables, { priority: "audit", signal });
    return { names: read(answer), seenAt: answer.seenAt, api: ctx.config.upstreamUrl };
  } catch (error) {
    if (!withEmails || !(error instanceof UpstreamRefusedError) || !isScopeLacking(error.message)) throw error;
    await learnLack(ctx.db, EMAILS, { reason: error.message, now: ctx.clock.now() });
    return await askNames(ctx, asked, signal);
  }
}
