import { eq } from "drizzle-orm";
import type { Queries } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import { levelOf } from "../../failure.ts";
import { writes } from "../../schema.ts";
import type { UpstreamHeaders } from "../../upstream/protocol/headers.ts";
import type { Call } from "../call/call.ts";
import type { User } from "../callers/permissions.ts";
import { repositoryIn } from "../dialect/protocol.ts";

/** The caller who writes, and the request. */
export interface WriteContext extends Pick<Call, "requestId"> {
  ctx: Pick<Call["ctx"], "db" | "clock" | "log">;
  caller: User;
}

export interface RecordedWrite {
  /** Of the request to upstream. */
  method: string;
  /** What the caller asked for; null: a forwarded write. */
  route: string | null;
  /** What it is about. The query is not kept. */
  path: string;
  /** Null: the path may tell. */
  repositoryId: number | null;
}

/** One row of `writes`. It is stored before anything is sent, so that a crash leaves it behind as unknown. */
export class WriteRecord {
  readonly #context: WriteContext;
  readonly #id: number;
  #answer: { status: number; requestId: string | null } | null = null;
  #isUnsent = false;

  constructor(context: WriteContext, id: number) {
    this.#context = context;
    this.#id = id;
  }

  /** Upstream has answered; of several answers the last one counts. */
  heard({ status, headers }: { status: number; headers: UpstreamHeaders }): void {
    this.#answer = { status, requestId: [headers["x-github-request-id"]].flat()[0] ?? null };
  }

  /** Upstream has seen nothing of it, unless it has answered. */
  unsent(): void {
    this.#isUnsent = true;
  }

  /** Stores the outcome, as far as it is known now. */
  async store(queries: Queries): Promise<void> {
    const { status, requestId } = this.#answer ?? { status: null, requestId: null };
    const outcome = status !== null ? "answered" : this.#isUnsent ? "unsent" : "unknown";
    await queries
      .update(writes)
      .set({ endedAt: this.#context.ctx.clock.now(), outcome, status, upstreamRequestId: requestId })
      .where(eq(writes.id, this.#id));
  }

  /** The same by itself. If that fails the row goes on to say "unknown", and the caller's answer is not lost. */
  async end(): Promise<void> {
    const { ctx, requestId } = this.#context;
    try {
      await this.store(ctx.db);
    } catch (error) {
      ctx.log[levelOf(error, "warn")]({ err: error, requestId }, "The outcome of a write could not be recorded");
    }
  }
}

/** Records a write that is about to be sent. While that cannot be done, nothing is sent. */
export async function beginRecord(
  context: WriteContext,
  { method, route, path, repositoryId }: RecordedWrite,
): Promise<WriteRecord> {
  const { ctx, caller, requestId } = context;
  const [bare = ""] = path.split("?");
  const token = caller.by.of === "own" ? caller.by.token.id : caller.by.fingerprint;
  const [row] = await ctx.db
    .insert(writes)
    .values({
      begunAt: ctx.clock.now(),
      tokenOf: caller.by.of,
      token,
      userId: caller.userId,
      method,
      route,
      path: bare,
      repositoryId: repositoryId ?? repositoryAt(bare),
      requestId,
    })
    .returning({ id: writes.id });
  if (!row) throw new Error("A write's row was made and has no id");
  return new WriteRecord(context, row.id);
}

/** The id of the repository that the path names, if it is known. */
function repositoryAt(path: string): SQL {
  const { fullName = null, id = null } = repositoryIn(path) ?? {};
  if (id !== null) return sql`(select id from repositories where id = ${id}::bigint)`;
  return sql`(select id from repositories where folded(full_name) = folded(${fullName}) and deleted_at is null
    order by seen_at desc limit 1)`;
}
