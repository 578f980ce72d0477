import type { ExecutionResult, GraphQLError, OperationDefinitionNode, SelectionNode } from "graphql";
import type { Exchange } from "../../http/exchange.ts";
import type { Reply } from "../../http/reply.ts";
import {
  type Confirmation,
  findConfirmation,
  findOldestConfirmation,
  joinConfirmations,
} from "../../mirror/read/repositories.ts";
import { eitherOf } from "../../work/signals.ts";
import type { ApiContext } from "../call.ts";
import type { QuotaFigures } from "../callers/quota.ts";
import { dialectReply, freshnessHeaders, JSON_TYPE, quotaHeaders } from "../dialect/reply.ts";
import type { RequestFigures } from "../metering.ts";
import type { GraphqlCall } from "./call.ts";
import { MissingValueError, quotaSpent, shownError } from "./errors.ts";
import type { Executed } from "./run/execution.ts";

/** The result of a query. It has no data if nothing was executed. */
export type Result = Partial<Executed> & Pick<Executed, "errors">;

/** Converts graphql-js's result to ours. */
export function resultOf({ data, errors = [] }: ExecutionResult): Result {
  return { ...(data === undefined ? {} : { data: JSON.stringify(data) }), errors };
}

export function resultText({ data, errors }: Result): string {
  const shown = errors.length > 0 ? `"errors":${JSON.stringify(errors.map(shownError))}` : "";
  return data === undefined ? `{${shown}}` : `{"data":${data}${shown && `,${shown}`}}`;
}

/** The first error that is not GraphQL's own. A resolver threw it, so callers must not read it. */
export function bugIn(errors: readonly GraphQLError[] = []): GraphQLError | undefined {
  return errors.find(({ originalError }) => originalError != null && originalError.name !== "GraphQLError");
}

export function quotaSpentText(userId: number): string {
  return resultText({ errors: [quotaSpent(userId)] });
}

export function wentWrongText(requestId: string, now: Date, guess = ""): string {
  const at = now.toISOString().replace(/\.\d+Z$/, "+00:00");
  const message = `Something went wrong while executing your query on ${at}.${guess} Please include \`${requestId}\` when reporting this issue.`;
  return JSON.stringify({ data: null, errors: [{ message }] });
}

const WINDOW_MS = 60_000;

/**
 * Logs fields that had no value where they must have one. Callers see each case among their errors, so one line a
 * minute for each field is enough, also for a list of broken rows. There are no more fields than the schema has.
 */
export class MissingValues {
  readonly #ctx: Pick<ApiContext, "clock" | "log">;
  readonly #loggedAt = new Map<string, number>();

  constructor(ctx: Pick<ApiContext, "clock" | "log">) {
    this.#ctx = ctx;
  }

  note(errors: readonly GraphQLError[], requestId: string): void {
    for (const { originalError, path } of errors) {
      if (!(originalError instanceof MissingValueError)) continue;
      const { field } = originalError;
      const now = this.#ctx.clock.now().getTime();
      if (now - (this.#loggedAt.get(field) ?? Number.NEGATIVE_INFINITY) < WINDOW_MS) continue;
      this.#loggedAt.set(field, now);
      this.#ctx.log.warn({ field, path: path?.join("."), requestId }, "A field that must have a value had none");
    }
  }
}

/** What is known of a request so far. */
export interface GraphqlProgress {
  exchange: Exchange;
  requestId: string;
  metered: RequestFigures;
  /** The headers that say which server this is. */
  server: Record<string, string>;
  figures: QuotaFigures | null;
  freshness: Record<string, string>;
  limit: TimeLimit | null;
}

export function reply(
  { requestId, server, figures, freshness }: GraphqlProgress,
  status: number,
  body: string | Buffer,
  headers: Record<string, string> = {},
): Reply {
  const media = { "Content-Type": JSON_TYPE, "X-GitHub-Media-Type": "github.v4; format=json" };
  const all = { ...server, ...media, ...freshness, ...headers, ...quotaHeaders(figures, "graphql") };
  return dialectReply(requestId, { status, headers: all, body });
}

/** Aborts the work on a request that takes too long, or whose caller has gone. */
export class TimeLimit {
  readonly signal: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  /** Whether the request has taken too long. */
  isOver = false;

  /** @param gone null: the work goes on without its caller */
  constructor(timeoutMs: number, gone: AbortSignal | null) {
    const late = new AbortController();
    this.#timer = setTimeout(() => {
      this.isOver = true;
      late.abort();
    }, timeoutMs);
    // The caller may have gone already.
    this.signal = gone ? eitherOf(late.signal, gone) : late.signal;
  }

  /** Ends the limit, since the request is answered. */
  lift(): void {
    clearTimeout(this.#timer);
  }
}

/** The headers that say how fresh an answer is. Its least fresh repository decides. */
export async function freshnessOf(
  ctx: ApiContext,
  call: GraphqlCall,
  before: Confirmation | null,
): Promise<Record<string, string>> {
  if (call.shownRepositories.size === 0) return {};
  const all = [await confirmationOf(ctx, call), before ?? undefined];
  const confirmed = joinConfirmations(all.filter((one) => one !== undefined));
  return freshnessHeaders(confirmed ?? {}, {
    now: ctx.clock.now(),
    staleAfterMs: ctx.config.staleAfterMs,
  });
}

/**
 * The confirmation that an edge reads before the rows of a document, since a replica that was cut off replays minutes
 * in a moment. Null: the document itself finds each repository before the rows in it, so its confirmation is early
 * enough.
 */
export async function confirmedBefore(
  ctx: ApiContext,
  { sight }: Pick<GraphqlCall, "sight">,
  { selectionSet }: OperationDefinitionNode,
): Promise<Confirmation | null> {
  const isFound = (one: SelectionNode) => one.kind === "Field" && FINDS.has(one.name.value);
  if (ctx.config.edgeOf === null || selectionSet.selections.every(isFound)) return null;
  return await findOldestConfirmation(ctx.readDb, sight);
}

/** Fields that find a repository before the rows in it, or that show no repository. */
const FINDS = new Set(["__typename", "rateLimit", "repository"]);

async function confirmationOf(
  ctx: ApiContext,
  { shownRepositories, confirmations }: GraphqlCall,
): Promise<Confirmation | undefined> {
  const ids = [...shownRepositories];
  const known = ids.map((id) => confirmations.get(id)).filter((one) => one !== undefined);
  const all = known.length === ids.length ? joinConfirmations(known) : await findConfirmation(ctx.db, ids);
  return all;
}
