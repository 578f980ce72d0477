import { alone } from "../../../db/alone.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { isObject, type Json } from "../../json.ts";
import { type AccountName, NAME_AGE_MS, type ReadNames, storeNames } from "../../mirror/store/names.ts";
import { asSent, list, nullable, text } from "../../upstream/protocol/field-readers.ts";
import { IDS_A_FIELD, RATE_LIMIT } from "../../upstream/protocol/graphql.ts";
import type { GraphqlError } from "../../upstream/protocol/upstream.ts";
import { tryAlone } from "../problems/isolated.ts";
import type { Subject } from "../problems/problems.ts";
import { IDS_A_QUERY } from "../questions/node-questions.ts";
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

interface NamedAccount {
  id: number;
  nodeId: string;
  /** Whether its name was read before. */
  isKnown: boolean;
}

/** Reads the names that are due, in one process at a time. @throws QuotaSpentError, CredentialRejectedError */
export async function fetchAndStoreNames(ctx: Context, signal?: AbortSignal): Promise<void> {
  await alone(ctx, "names of accounts", (running) => tryAlone(ctx, NAMES, () => fetchAndStoreDue(ctx, running)), {
    signal,
  });
}

async function fetchAndStoreDue(ctx: Context, signal: AbortSignal): Promise<void> {
  const due = await findDue(ctx);
  if (due.length === 0 || !(await mayTakeMoment(ctx, PACE))) return;
  for (let start = 0; start < due.length && !signal.aborted; start += IDS_A_QUERY) {
    const asked = due.slice(start, start + IDS_A_QUERY);
    const read = { api: ctx.config.upstreamUrl, ...(await askNames(ctx, asked, signal)) };
    await ctx.db.transaction((tx) => storeNames(tx, read));
  }
}

/** As many as fill the queries for those that are due now. What is due longest comes first. */
async function findDue({ db, clock }: Pick<Context, "db" | "clock">): Promise<NamedAccount[]> {
  const now = clock.now();
  const rows = await db.query<NamedAccount & { isDue: boolean }>(sql`
    select u.id, u.node_id as "nodeId", u.document -> 'name' is not null as "isKnown", a.due_at <= ${now} as "isDue"
      from account_names a join users u on u.id = a.user_id
      where a.due_at <= ${new Date(now.getTime() + SOON_MS)} and u.node_id is not null and u.deleted_at is null
      order by a.due_at, a.user_id limit ${QUERIES_AT_ONCE * IDS_A_QUERY}`);
  const queries = Math.ceil(rows.filter(({ isDue }) => isDue).length / IDS_A_QUERY);
  return rows.slice(0, queries * IDS_A_QUERY);
}

const SELECTION = "... on User { databaseId name company } ... on Organization { databaseId name }";

async function askNames(
  { upstream }: Pick<Context, "upstream">,
  asked: readonly NamedAccount[],
  signal: AbortSignal,
): Promise<Omit<ReadNames, "api">> {
  const parts = Array.from({ length: Math.ceil(asked.length / IDS_A_FIELD) }, (_, at) => ({
    alias: `names${at}`,
    accounts: asked.slice(at * IDS_A_FIELD, (at + 1) * IDS_A_FIELD),
  }));
  const document = `query(${parts.map(({ alias }) => `$${alias}: [ID!]!`).join(", ")}) { ${RATE_LIMIT}
    ${parts.map(({ alias }) => `${alias}: nodes(ids: $${alias}) { ${SELECTION} }`).join("\n")} }`;
  const variables = Object.fromEntries(
    parts.map(({ alias, accounts }) => [alias, accounts.map(({ nodeId }) => nodeId)]),
  );
  const { data, errors, seenAt } = await upstream.graphql(document, variables, { priority: "audit", signal });
  const names = parts.flatMap(({ alias, accounts }) => {
    const nodes = nullable(list(asSent))(data[alias], alias) ?? [];
    return accounts.map((account, at): [number, AccountName] => {
      const faults = errors.filter(({ path }) => path[0] === alias && (path[1] === at || path[1] === undefined));
      return [account.id, nameIn(nodes[at], account, faults)];
    });
  });
  return { names: new Map(names), seenAt };
}

/**
 * What upstream shows of the account. Under a global id that a webhook has made up it shows none, or another; nor does it show
 * one that is gone. Such an account keeps the name that it had, or has none.
 */
function nameIn(node: Json | undefined, { id, isKnown }: NamedAccount, faults: readonly GraphqlError[]): AccountName {
  const none = isKnown ? {} : { name: null };
  if (faults.length > 0) return faults.every(({ type }) => type === "NOT_FOUND") ? none : "unclear";
  if (!isObject(node)) return "unclear";
  const { databaseId, name, company } = node;
  if (databaseId !== id) return none;
  return {
    ...(name === undefined ? {} : { name: nullable(text)(name, "name") }),
    ...(company === undefined ? {} : { company: nullable(text)(company, "company") }),
  };
}
