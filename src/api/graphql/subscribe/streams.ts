import { GraphQLError, type GraphQLSchema } from "graphql";
import type { Outlet } from "../../../http/reply.ts";
import type { ApiContext } from "../../call/call.ts";
import { classOf, type User } from "../../callers/permissions.ts";
import type { CallerQuota, QuotaFigures } from "../../callers/quota.ts";
import { ApiFault } from "../../dialect/fault.ts";
import type { StreamPlaces } from "../../streams/places.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Query } from "../documents/query.ts";
import { rateLimited, typedError } from "../run/errors.ts";
import type { Plans } from "../run/plans.ts";
import { bugIn, type MissingValues, type Result, resultOf, resultText, wentWrongText } from "../run/result.ts";
import { eventStream, openEvents } from "./events.ts";

/** The caller who subscribes. Each event checks anew whether they still may. */
export interface Subscriber {
  caller: User;
  /** The user whose credential this is now. @throws ApiFault for a credential that has become invalid */
  identify: () => Promise<User>;
  callFor: (caller: User, figures: QuotaFigures | null) => GraphqlCall;
  requestId: string;
}

interface StreamsParts {
  quota: CallerQuota;
  schema: GraphQLSchema;
  plans: Plans;
  missing: MissingValues;
  /** How long an event may take to be shown. */
  timeoutMs: number;
  lifetimeMs: number;
  unreadMs: number;
  places: StreamPlaces;
}

/** The subscriptions that this process streams. Each event is judged, and paid for, like a request of its own. */
export class Streams {
  readonly #ctx: Pick<ApiContext, "clock" | "log">;
  readonly #quota: CallerQuota;
  readonly #schema: GraphQLSchema;
  readonly #plans: Plans;
  readonly #missing: MissingValues;
  readonly #timeoutMs: number;
  readonly #lifetimeMs: number;
  readonly #unreadMs: number;
  readonly #places: StreamPlaces;

  constructor(
    ctx: Pick<ApiContext, "clock" | "log">,
    { quota, schema, plans, missing, timeoutMs, lifetimeMs, unreadMs, places }: StreamsParts,
  ) {
    this.#ctx = ctx;
    this.#quota = quota;
    this.#schema = schema;
    this.#plans = plans;
    this.#missing = missing;
    this.#timeoutMs = timeoutMs;
    this.#lifetimeMs = lifetimeMs;
    this.#unreadMs = unreadMs;
    this.#places = places;
  }

  /** The writer of the stream, or why there is none. */
  async open(query: Query, subscriber: Subscriber): Promise<Result | ((outlet: Outlet) => Promise<void>)> {
    const { clock, log } = this.#ctx;
    const { caller, callFor, requestId } = subscriber;
    using place = this.#places.take(caller);
    if (!place) return { errors: [typedError("RESOURCE_LIMITS_EXCEEDED", this.#places.refusal)] };
    const events = await openEvents(
      { schema: this.#schema, plans: this.#plans, timeoutMs: this.#timeoutMs },
      query,
      callFor(caller, null),
    );
    if (!("told" in events)) return resultOf(events);
    const onFailure = (error: unknown) => {
      log.error({ err: error, requestId }, "A subscription failed");
      return wentWrongText(requestId, clock.now());
    };
    const format = (result: Result) => {
      this.#missing.note(result.errors, requestId);
      const bug = bugIn(result.errors);
      return bug ? onFailure(bug.originalError ?? bug) : resultText(result);
    };
    const over = typedError(
      "RESOURCE_LIMITS_EXCEEDED",
      "This subscription has lasted as long as one may. Subscribe again.",
    );
    const stream = eventStream(events, {
      next: () => this.#next(subscriber, query.cost.points),
      format,
      lifetime: { ms: this.#lifetimeMs, over },
      unreadMs: this.#unreadMs,
      onEnd: (why) => log.info({ requestId, userId: caller.userId, why }, "A subscription was ended"),
      onFailure,
    });
    const taken = place.move();
    return async (outlet) => {
      using _place = taken;
      await stream(outlet);
    };
  }

  /** The call that shows the next event, paid for, or why the caller gets none. */
  async #next({ caller, identify, callFor }: Subscriber, points: number): Promise<GraphqlCall | GraphQLError> {
    let now: User;
    try {
      now = await identify();
    } catch (error) {
      if (!(error instanceof ApiFault)) throw error;
      return new GraphQLError(error.message);
    }
    // The events so far were shown by other rights.
    if (now.userId !== caller.userId || classOf(now) !== classOf(caller))
      return typedError("FORBIDDEN", "What this token may see has changed. Subscribe again.");
    const { isSpent, figures } = await this.#quota.spend(now, "graphql", points);
    return isSpent ? rateLimited(now.userId) : callFor(now, figures);
  }
}
