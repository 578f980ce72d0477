import { isPostgresOutage } from "../../../db/outage.ts";
import { EVENTS_TOLD } from "../../events/log.ts";
import type { LogEnd } from "../../events/log-end.ts";
import { keptAfter } from "../../events/log-reads.ts";
import type { Exchange } from "../../http/exchange.ts";
import { JSON_TYPE, type Reply } from "../../http/reply.ts";
import { faultReply } from "../call/failure.ts";
import { type ApiRequest, answerRequest, type PipelineParts } from "../call/pipeline.ts";
import { accessOf, type User } from "../callers/permissions.ts";
import { quotaHeaders } from "../callers/quota.ts";
import { ApiFault, notFound, REST_DOCS } from "../dialect/fault.ts";
import { apiAddress, commonHeaders, dialectReply } from "../dialect/protocol.ts";
import type { Announcements } from "../streams/announcements.ts";
import { Bell } from "../streams/bell.ts";
import { lasting } from "../streams/lasting.ts";
import type { StreamPlaces } from "../streams/places.ts";
import { CONTENT_TYPES, signText } from "./envelope.ts";
import { type FeedEnd, FeedMeter } from "./metering.ts";
import { type FeedQuestion, readQuestion } from "./question.ts";
import { FeedStream } from "./stream.ts";

const END_UNKNOWN = "Where the log of events ends cannot be said: a transaction that writes it does not end.";

interface FeedSetup extends PipelineParts {
  announcements: Announcements;
  /** The end of the log. */
  end: LogEnd;
  places: StreamPlaces;
  /** How long a stream stays open. */
  lifetimeMs: number;
  /** How long a reader may leave written events unread. */
  unreadMs: number;
}

/** A caller's question that they may ask. */
interface AskedFeed {
  caller: User;
  question: FeedQuestion;
  /** The repositories that are asked about. Null: all that the caller sees. */
  repositoryIds: readonly number[] | null;
}

/** Answers `GET /-/events`: the log of events, as a stream that goes on from wherever its reader has come to. */
export class Feed {
  readonly #parts: FeedSetup;
  readonly #meter: FeedMeter;

  constructor(parts: FeedSetup) {
    this.#parts = parts;
    this.#meter = new FeedMeter(parts.ctx.metrics);
  }

  async handle(exchange: Exchange): Promise<Reply> {
    return await answerRequest(this.#parts, exchange, {
      route: "/-/events",
      bucket: "core",
      answer: (request) => this.#answer(request),
      refuse: refused,
    });
  }

  async #answer(request: ApiRequest): Promise<Reply> {
    const { places } = this.#parts;
    const { exchange, id, bucket } = request;
    // The service has no such feed, so nothing is spared.
    request.metered.price = 0;
    const caller = await userOf(request);
    await request.pay(caller);
    const question = readQuestion(exchange.headers, new URLSearchParams(exchange.search));
    const repositoryIds = await this.#repositoryIds(question, caller);
    using place = places.take(caller);
    if (!place) throw new ApiFault(429, places.refusal, { headers: { "Retry-After": "60" } });
    const reader = place.move();
    try {
      const stream = await this.#open(request, { caller, question, repositoryIds }, reader);
      const headers = {
        ...commonHeaders(id),
        ...quotaHeaders(request.figures, bucket),
        "Content-Type": CONTENT_TYPES[question.form],
        "Cache-Control": "no-cache",
        "X-Accel-Buffering": "no",
      };
      if (exchange.method !== "HEAD") return { status: 200, headers, body: null, stream };
      reader.dispose();
      return { status: 200, headers, body: null };
    } catch (error) {
      reader.dispose();
      throw error;
    }
  }

  /** @param reader what is held for the reader until the stream ends */
  async #open(
    request: ApiRequest,
    { caller, question: { form, since, events, actions }, repositoryIds }: AskedFeed,
    reader: DisposableStack,
  ): Promise<NonNullable<Reply["stream"]>> {
    const { ctx, quota, lifetimeMs, unreadMs } = this.#parts;
    const { exchange, id: requestId } = request;
    // The stream listens before it reads the log's end, so it hears of whatever is committed after that.
    const { bell, isEnded } = await this.#join(exchange, reader);
    const begin = await this.#begin(since);
    const api = apiAddress(ctx.config, exchange, { isEnterprise: false });
    const reading = {
      ...{ form, filter: { repositoryIds, events, actions }, api, caller },
      identify: () => userOf(request),
      woken: () => bell.rung(),
      isEnded,
    };
    const stream = new FeedStream({ ctx, quota, end: this.#parts.end, meter: this.#meter }, reading, begin);
    const write = lasting(
      { lifetimeMs, unreadMs, sign: () => signText(form, stream.place, api), stop: () => bell.ring() },
      (line) => this.#tell(stream, line, { form, requestId, userId: caller.userId }),
    );
    return async (outlet) => {
      using _held = reader;
      await write(outlet);
    };
  }

  /** Listens for the stream. The bell rings when the log has grown, and when the stream has to end. */
  async #join(
    exchange: Exchange,
    reader: DisposableStack,
  ): Promise<{ bell: Bell; isEnded: () => "gone" | "lost" | null }> {
    const bell = new Bell();
    let ended: "gone" | "lost" | null = null;
    reader.use(
      await this.#parts.announcements.join({
        onText: (text) => {
          if (text === EVENTS_TOLD) bell.ring();
        },
        onEnd: () => {
          ended ??= "lost";
          bell.ring();
        },
      }),
    );
    const leave = () => {
      ended = "gone";
      bell.ring();
    };
    // They may have gone before their stream began.
    if (exchange.gone.aborted) leave();
    else exchange.gone.addEventListener("abort", leave);
    return { bell, isEnded: () => ended };
  }

  /** Tells events until the stream ends. It never fails: a stream that has begun has no other answer than its end. */
  async #tell(
    stream: FeedStream,
    line: Parameters<FeedStream["tell"]>[0],
    { form, requestId, userId }: { form: FeedQuestion["form"]; requestId: string; userId: number },
  ): Promise<void> {
    const { log } = this.#parts.ctx;
    let why: FeedEnd = "failed";
    this.#meter.begin(form);
    try {
      why = await stream.tell(line);
    } catch (error) {
      if (isPostgresOutage(error)) why = "lost";
      else log.error({ err: error, requestId }, "A stream of the feed failed");
    } finally {
      this.#meter.end(form, why);
      if (why !== "gone") log.info({ requestId, userId, why }, "A stream of the feed was ended");
    }
  }

  /**
   * The place where the stream begins. @throws ApiFault 410 if events since then were pruned, 400 for a place that does
   * not exist
   */
  async #begin(since: number | null): Promise<number> {
    const { place: end, isCertain } = await this.#parts.end.now();
    if (!isCertain) throw new ApiFault(503, END_UNKNOWN, { headers: { "Retry-After": "5" } });
    if (since === null) return end;
    const kept = await keptAfter(this.#parts.ctx.readDb);
    if (since < kept) throw new PrunedFault(kept);
    if (since > end)
      throw new ApiFault(400, `No event has the id ${since}: the last one has ${end}. Is it another mirror's?`);
    return since;
  }

  /**
   * The ids of the repositories that are asked about. @throws ApiFault 404 for a repository that the caller does not
   * see
   */
  async #repositoryIds({ repositories }: FeedQuestion, caller: User): Promise<number[] | null> {
    if (!repositories) return null;
    const access = accessOf(caller);
    const found = await Promise.all(
      repositories.map((name) => this.#parts.ctx.mirror.repositories.named(name, access)),
    );
    return found.map((one) => {
      if (!one) throw notFound();
      return one.id;
    });
  }
}

/** @throws ApiFault 401 for a reader without a token */
function userOf(request: ApiRequest): Promise<User> {
  return request.user(() => new ApiFault(401, "Requires authentication"));
}

/** The reader was away for longer than events are kept. */
class PrunedFault extends ApiFault {
  override name = "PrunedFault";
  readonly kept: number;

  constructor(kept: number) {
    super(410, `Events up to ${kept} are no longer kept: read on with since=${kept}, or without it from now.`);
    this.kept = kept;
  }
}

/** The reply to a reader who is refused. Programs, too, can read from where one who was away for too long goes on. */
function refused({ id, figures, bucket }: ApiRequest, fault: ApiFault): Reply {
  const quota = quotaHeaders(figures, bucket);
  if (!(fault instanceof PrunedFault)) return faultReply(id, fault, quota);
  const { status, message, kept } = fault;
  const body = { message, since: String(kept), documentation_url: REST_DOCS, status: String(status) };
  return dialectReply(id, { status, headers: { "Content-Type": JSON_TYPE, ...quota }, body: JSON.stringify(body) });
}
