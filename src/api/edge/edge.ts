import { isPostgresOutage } from "../../../db/outage.ts";
import { eraOf, hasReached, type LogPosition } from "../../../db/replica.ts";
import type { Context } from "../../context.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { Reply } from "../../http/reply.ts";
import { isRead } from "../../http/reply.ts";
import { isForElsewhere } from "../../operations/elsewhere.ts";
import { UnsafePathError } from "../../upstream/protocol/paths.ts";
import { lookUntil } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { faultReply } from "../call/failure.ts";
import { REPLICA_WAIT_MS } from "../call/replicas.ts";
import { ApiFault, notFound } from "../dialect/fault.ts";
import { asksFresh, MAX_BODY_BYTES, type RequestIds } from "../dialect/protocol.ts";
import { Centre, CentreAwayError } from "./centre.ts";
import { POSITION_PATH, positionHeaders, positionOf } from "./position.ts";

export interface Here {
  /** Answers from the replica. */
  answer: () => Promise<Reply>;
  /** The request's body, if it was already read. Null: it was not. */
  body: Buffer | null;
  /** Whether the centre may write for this request. */
  mayWrite: boolean;
}

type CountAnswer = (by: "replica" | "centre" | "nobody") => void;

/** Counts an edge's answers. Every web process has this metric. */
export function answersOfEdge({ metrics }: Pick<Context, "metrics">): CountAnswer {
  const answers = metrics.counter("tain_edge_answers_total", "Requests to an edge, by what answered them.", ["by"]);
  return (by) => answers.inc({ by });
}

/**
 * A web process near its readers. It answers reads from a replica alone, and passes all else on to the centre. While
 * the centre cannot be reached, reads are still answered, and say how old they are. Requests that only the centre can
 * serve are refused then. After a write the edge waits for the replica, so that writers read here what they wrote. If
 * the replica is late, the centre answers the read.
 */
export class Edge {
  readonly #ctx: Pick<Context, "db" | "random" | "log">;
  readonly #centre: Centre;
  readonly #requestIds: RequestIds;
  readonly #count: CountAnswer;
  /**
   * The position that the replica has to reach before it is read again. "unknown": the centre has still to be asked.
   */
  #awaited: LogPosition | "unknown" | null = null;

  constructor(
    ctx: Pick<Context, "db" | "random" | "log" | "tracing"> & { requestIds: RequestIds; count: CountAnswer },
    address: string,
  ) {
    this.#ctx = ctx;
    this.#requestIds = ctx.requestIds;
    this.#centre = new Centre(ctx, address);
    this.#count = ctx.count;
  }

  /** @param here null: the replica cannot answer this request. @throws what `here` does */
  async answer(exchange: Exchange, here: Here | null): Promise<Reply> {
    try {
      return await (here ? this.#nearest(exchange, here) : this.#fromCentre(exchange, null));
    } catch (error) {
      const fault = error instanceof UnsafePathError ? notFound() : error;
      if (!(fault instanceof ApiFault)) throw error;
      return faultReply(this.#requestIds.next(), fault);
    }
  }

  async #nearest(exchange: Exchange, here: Here): Promise<Reply> {
    const { method, search, headers } = exchange;
    if (method === "OPTIONS") return await here.answer();
    const isFresh = isRead(method) && asksFresh(new URLSearchParams(search), headers);
    if (isFresh || (await this.#isBehind())) {
      try {
        return await this.#passOn(exchange, here);
      } catch (error) {
        if (!(error instanceof CentreAwayError)) throw error;
      }
    }
    try {
      const reply = await here.answer();
      this.#count("replica");
      return reply;
    } catch (error) {
      if (!isForElsewhere(error)) throw error;
      return await this.#fromCentre(exchange, here, error);
    }
  }

  close(): Promise<void> {
    return this.#centre.close();
  }

  /** @param why the replica could not answer. @throws ApiFault 503 while the centre is away */
  async #fromCentre(exchange: Exchange, here: Here | null, why?: unknown): Promise<Reply> {
    try {
      return await this.#passOn(exchange, here);
    } catch (error) {
      if (!(error instanceof CentreAwayError)) throw error;
      this.#count("nobody");
      const what = isRead(exchange.method) ? "answers this" : "takes writes";
      throw new ApiFault(
        503,
        `Service Unavailable: the centre, which ${what}, cannot be reached from this edge. Nothing was done.`,
        {
          headers: { "Retry-After": "5" },
          cause: why ?? error,
        },
      );
    }
  }

  async #passOn(exchange: Exchange, here: Here | null): Promise<Reply> {
    const isReading = isRead(exchange.method);
    using held = here?.body || isReading ? null : await exchange.body(MAX_BODY_BYTES);
    const reply = await this.#centre.answer(exchange, here?.body ?? held?.bytes ?? null);
    this.#count("centre");
    if (reply.status < 400 && (here?.mayWrite ?? !isReading)) await this.#follow();
    return reply;
  }

  /** Waits until the replica shows what was written, for as long as a read waits for one. */
  async #follow(): Promise<void> {
    this.#awaited = "unknown";
    const { random } = this.#ctx;
    const policy = { ...RETRIES.edgePosition, withinMs: REPLICA_WAIT_MS };
    await lookUntil(async () => !(await this.#isBehind()), { policy, random });
  }

  async #position(): Promise<LogPosition | null> {
    const era = await eraOf((look) => this.#ctx.db.query(look));
    return positionOf(await this.#centre.get(POSITION_PATH, positionHeaders(era)));
  }

  /** Whether the replica lacks what was written through this process. */
  async #isBehind(): Promise<boolean> {
    const awaited = this.#awaited;
    if (awaited === null) return false;
    try {
      const position = awaited === "unknown" ? await this.#position() : awaited;
      // The replica has still to follow a new history.
      if (position === null) return true;
      const isThere = await hasReached((look) => this.#ctx.db.query(look), position);
      // Another write may have begun meanwhile.
      if (this.#awaited === awaited) this.#awaited = isThere ? null : position;
      return this.#awaited !== null;
    } catch (error) {
      if (!(error instanceof CentreAwayError) && !isPostgresOutage(error)) throw error;
      return true;
    }
  }
}
