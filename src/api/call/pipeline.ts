import type { Exchange } from "../../http/exchange.ts";
import { isRead, type Reply } from "../../http/reply.ts";
import type { Callers } from "../callers/caller.ts";
import type { Caller, User } from "../callers/permissions.ts";
import type { Bucket, CallerQuota, QuotaFigures } from "../callers/quota.ts";
import { PREFLIGHT } from "../dialect/cors.ts";
import { ApiFault, quotaSpent } from "../dialect/fault.ts";
import { agentMissing, dialectReply, hasAgent, type RequestIds } from "../dialect/protocol.ts";
import type { ApiContext } from "./call.ts";
import type { ApiMeter, RequestFigures } from "./metering.ts";

/** What every door of the API is made with. */
export interface PipelineParts {
  ctx: ApiContext;
  meter: ApiMeter;
  callers: Callers;
  quota: CallerQuota;
  requestIds: RequestIds;
}

/** How one door answers requests. */
interface ApiDoor {
  /** The request's route, for its figures. */
  route: string;
  /** Which quota the request costs. */
  bucket: Bucket;
  answer: (request: ApiRequest) => Promise<Reply>;
  /** The reply to a request that is refused, with all that is known of it. */
  refuse: (request: ApiRequest, fault: ApiFault) => Reply | Promise<Reply>;
}

/**
 * What each request of the dialect goes through, at whichever door it comes: it gets an id and is metered, must name its
 * agent, shows who asks, and is paid for. Whatever refuses it is answered in the door's form. The doors differ where
 * the service does, or where their answers do:
 *
 * - Payment. REST costs a request before its body is read; a 304 gives it back. A document of GraphQL says itself what
 *   it costs: the caller must have a point left before it is read, and pays once it is priced. The feed costs a request
 *   when it is opened, and one for each page that it tells.
 * - Callers. REST knows callers without a token; the others refuse them.
 * - What is kept. A page of REST is found by the request's text, before all of this (`Again`). A result of GraphQL is
 *   found by the caller and the document, once the body is read. The feed keeps nothing.
 * - A spent quota is a refusal, but a result of status 200 in GraphQL.
 *
 * @throws what is no fault of the caller's
 */
export async function answerRequest(parts: PipelineParts, exchange: Exchange, door: ApiDoor): Promise<Reply> {
  const { meter, requestIds } = parts;
  const metered = meter.begin(door.route, exchange.method, exchange.headers["user-agent"]);
  return await meter.around(exchange, metered, async () => {
    const requestId = requestIds.next();
    if (exchange.method === "OPTIONS") return dialectReply(requestId, { status: 204, headers: PREFLIGHT, body: null });
    if (!hasAgent(exchange.headers)) return agentMissing(requestId);
    using request = new ApiRequest(parts, exchange, { requestId, metered, bucket: door.bucket });
    try {
      return await door.answer(request);
    } catch (error) {
      // Nobody reads this reply.
      const isGivenUp = request.endsWithCaller && exchange.gone.aborted;
      const fault = isGivenUp ? new ApiFault(499, "Client Closed Request", { cause: error }) : error;
      if (!(fault instanceof ApiFault)) throw fault;
      return await door.refuse(request, fault);
    }
  });
}

/** A request that is being answered: what is known of it so far. */
export class ApiRequest implements Disposable {
  readonly exchange: Exchange;
  /** Names the request in replies and logs. */
  readonly id: string;
  readonly metered: RequestFigures;
  readonly bucket: Bucket;
  /** The memory of its body is held until it is answered. */
  readonly bodies = new DisposableStack();
  /** Headers that are known before the reply: which server this is, what the token may do, how fresh the answer is. */
  readonly replyHeaders: Record<string, string> = {};
  /** The caller's quota, as of the last payment. Null: there is no limit, or nothing was asked yet. */
  figures: QuotaFigures | null = null;
  /** Whether its work is given up once the caller has gone. A write goes on. */
  endsWithCaller: boolean;
  readonly #parts: PipelineParts;

  constructor(
    parts: PipelineParts,
    exchange: Exchange,
    { requestId, metered, bucket }: { requestId: string; metered: RequestFigures; bucket: Bucket },
  ) {
    this.#parts = parts;
    this.exchange = exchange;
    this.id = requestId;
    this.metered = metered;
    this.bucket = bucket;
    this.endsWithCaller = isRead(exchange.method);
  }

  /** The caller. @throws ApiFault as `Callers.identify` */
  async caller(): Promise<Caller> {
    const { headers, address } = this.exchange;
    const caller = await this.#parts.callers.identify({ authorization: headers.authorization, address });
    this.#parts.meter.identified(this.metered, caller);
    return caller;
  }

  /** The caller, who must have a token. @throws ApiFault as `Callers.identify`, and `unknown` for anybody else */
  async user(unknown: () => ApiFault): Promise<User> {
    const caller = await this.caller();
    if (caller.kind !== "user") throw unknown();
    return caller;
  }

  /** Takes `cost` from the caller's quota. Answers whether there was not that much left. */
  async spend(caller: Caller, cost: number): Promise<boolean> {
    const { figures, isSpent } = await this.#parts.quota.spend(caller, this.bucket, cost);
    this.figures = figures;
    return isSpent;
  }

  /** Takes one request from the caller's quota. @throws ApiFault 403 when it is spent */
  async pay(caller: Caller): Promise<void> {
    if (!(await this.spend(caller, 1))) return;
    throw quotaSpent(caller, { requestId: this.id, now: this.#parts.ctx.clock.now(), reset: this.figures?.reset });
  }

  [Symbol.dispose](): void {
    this.bodies.dispose();
  }
}
