import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { version } from "../../operations/version.ts";
import type { Stores } from "../../stores.ts";
import { type Condition, Conditions, emptyPage, type PageConditions } from "../conditional/conditions.ts";
import { successorQuestion } from "../conditional/successor.ts";
import { type KnownValidator, validatorPath } from "../conditional/validators.ts";
import { APP } from "../credentials/credentials.ts";
import { tokenMark } from "../credentials/installation-tokens.ts";
import { installationOf } from "../credentials/installations.ts";
import { type Candidates, isSuspension, Keyring } from "../credentials/keyring.ts";
import { repositoryOf, Visibility } from "../credentials/visibility.ts";
import { type Judgement, limitOf, readQuotaHeaders } from "../quota/headers.ts";
import { writePoints } from "../quota/pace.ts";
import { type Demand, type GrantedLease, Quota } from "../quota/quota.ts";
import { graphqlPath, pathBelow } from "./address.ts";
import { endToEnd, messageOf, readAnswer } from "./answer.ts";
import {
  CredentialRejectedError,
  CredentialUnusableError,
  QuotaSpentError,
  UpstreamUnavailableError,
} from "./errors.ts";
import { Gate, maxUnderWay } from "./gate.ts";
import { type GraphqlAnswer, graphqlAnswer, isMutation, judgeGraphql, parseGraphql } from "./graphql.ts";
import { type Received, Transport, type TransportLimits } from "./transport.ts";
import type { Answer, GetOptions, GraphqlOptions, RawAnswer, Upstream, WriteRequest } from "./upstream.ts";

type UpstreamContext = Pick<Stores, "config" | "db" | "redis" | "clock" | "random" | "log">;

export interface ClientLimits extends TransportLimits {
  /** The wait before the first repetition, on average; the second is twice as long. */
  repeatAfterMs: number;
}

const defaults: ClientLimits = {
  connections: maxUnderWay,
  connectTimeoutMs: 10_000,
  headersTimeoutMs: 15_000,
  bodyTimeoutMs: 30_000,
  totalTimeoutMs: 90_000,
  maxBodyBytes: 64 * 1024 * 1024,
  repeatAfterMs: 500,
};

const maxRepeats = 2;
/** The version of the dialect that the mirror stores. */
const apiVersion = "2022-11-28";

/** Opens the client. It connects when it first needs to. */
export function openUpstream(ctx: UpstreamContext, limits: Partial<ClientLimits> = {}): Upstream {
  return new UpstreamClient(ctx, { ...defaults, ...limits });
}

interface Ask {
  request: {
    method: "GET" | WriteRequest["method"];
    path: string;
    isAbsolute?: boolean;
    headers: Record<string, string>;
    body?: string | null;
  };
  demand: Demand;
  /** Those that may be asked. */
  credentials: readonly string[];
  /** Those of them that go first. */
  preferred?: readonly string[];
  /** It is part of another request, whose place among those under way it takes. */
  isWithin?: true;
  conditions?: PageConditions;
  judge?: (received: Received) => Judgement;
}

interface Attempt {
  received: Received;
  credential: string;
  seenAt: Date;
  /** The request's headers, the condition's apart. */
  sent: Record<string, string>;
  condition: Condition | null;
  /** Set when the credential may not be used now, and so a request that may be repeated goes to another. */
  refusal: Error | null;
  /** Upstream took what was shown to be over, and there is something newer to show by now. */
  isRenewable: boolean;
}

class UpstreamClient implements Upstream {
  readonly #ctx: UpstreamContext;
  readonly #limits: ClientLimits;
  readonly #keyring: Keyring;
  readonly #quota: Quota;
  readonly #conditions: Conditions;
  readonly #visibility = new Visibility();
  readonly #gate = new Gate();
  readonly #transport: Transport;
  /** What each document cost last time, as the lease for its next time. */
  readonly #costs = new LRUCache<string, number>({ max: 100 });

  constructor(ctx: UpstreamContext, limits: ClientLimits) {
    this.#ctx = ctx;
    this.#limits = limits;
    this.#keyring = new Keyring(ctx, (path) => this.#postAsApp(path));
    this.#quota = new Quota(ctx, this.#keyring.ledgerOf);
    this.#conditions = new Conditions(ctx);
    this.#transport = new Transport(ctx.config.upstreamUrl, limits);
  }

  async get(address: string, options: GetOptions): Promise<Answer> {
    const path = pathBelow(this.#ctx.config.upstreamUrl, address);
    const key = validatorPath(path, options);
    const conditions = options.conditional ? await this.#conditions.of(key) : null;
    const attempt = await this.#ask(path, options, conditions);
    const { received, condition } = attempt;
    if (received.status !== 304 || !condition) return this.#read(path, options, attempt);
    if (condition.kind === "empty") {
      return this.#read(path, options, { ...attempt, received: emptyPage(condition, received) });
    }
    const madeFor = this.#keyring.changes(attempt.credential) ? tokenMark(attempt.sent.authorization ?? "") : null;
    await this.#conditions.confirmed(condition, { credential: attempt.credential, madeFor });
    const { validator } = condition;
    // The ETag does not cover the Link header: a full last page may have got a successor without changing itself.
    if (!validator?.isFull || validator.next !== null) return this.#read(path, options, attempt);
    const next = await this.#successorOf(path, options, validator);
    if (next === undefined) return this.#read(path, options, await this.#ask(path, options, null));
    return this.#read(path, options, { ...attempt, condition: { ...condition, validator: { ...validator, next } } });
  }

  /**
   * Asks a credential that sees the repository, as far as that is known. Upstream's 404 also means "not for this token", so
   * one of a credential that has never seen the repository is asked of the others.
   */
  async #ask(path: string, options: GetOptions, conditions: PageConditions | null): Promise<Attempt> {
    const { all, preferred } = await this.#candidates(path, options.credential);
    let candidates = this.#visibility.mayBeAsked(path, all);
    const blind: string[] = [];
    for (;;) {
      const attempt = await this.#askAmong({ credentials: candidates, preferred }, path, options, conditions);
      const { received, credential } = attempt;
      if (received.status !== 404) {
        const isSeen = received.status < 300 || received.status === 304;
        for (const other of blind) if (isSeen) this.#visibility.note(path, other, false);
        if (isSeen) this.#visibility.note(path, credential, true);
        return attempt;
      }
      // What no installation covers is public or hidden from them all, so one of them speaks for all.
      const isStranger = installationOf(credential) !== null && !preferred.includes(credential);
      candidates = candidates.filter(
        (candidate) => candidate !== credential && !(isStranger && installationOf(candidate) !== null),
      );
      const isCertain = repositoryOf(path) === null || this.#visibility.sees(path, credential);
      // Where none sees it, each has been asked. That is not remembered: what is missing now may be there tomorrow.
      if (isCertain || candidates.length === 0) return attempt;
      blind.push(credential);
    }
  }

  async #candidates(path: string, only: string | undefined): Promise<Candidates> {
    await this.#keyring.prepare();
    return only === undefined ? await this.#keyring.candidates(path) : { all: [only], preferred: [] };
  }

  #askAmong(
    { credentials, preferred }: Pick<Ask, "credentials" | "preferred">,
    path: string,
    { priority, accept, signal }: GetOptions,
    conditions: PageConditions | null,
  ): Promise<Attempt> {
    return this.#askSafely({
      credentials,
      ...(preferred ? { preferred } : {}),
      request: { method: "GET", path, headers: accept === undefined ? {} : { accept } },
      demand: { bucket: bucketOf(path), api: "rest", cost: 1, isWrite: false, priority, signal },
      ...(conditions ? { conditions } : {}),
      judge: (answer) => ({
        limit: limitOf(answer.status, answer.headers, messageOf(answer)),
        // GitHub docs: a 304 to an authorised request does not count.
        charged: answer.status === 304 ? 0 : 1,
      }),
    });
  }

  async #read(path: string, options: GetOptions, attempt: Attempt): Promise<Answer> {
    const { received, credential, seenAt, sent, condition } = attempt;
    const { accept, conditional, anew } = options;
    const key = validatorPath(path, options);
    const validator = condition?.validator ?? undefined;
    const base = this.#ctx.config.upstreamUrl;
    const madeFor = this.#keyring.changes(credential) ? tokenMark(sent.authorization ?? "") : null;
    const answer = readAnswer({ base, path, key, accept, credential, madeFor, seenAt, validator }, received);
    if ((conditional || anew) && answer.kind === "ok" && answer.validator) {
      Object.assign(answer.validator, await this.#conditions.bodyOf(answer.validator, received, sent));
    }
    return answer;
  }

  /** The page that follows a full last page by now, as a path; null: still none; undefined: that cannot be told for nothing. */
  async #successorOf(path: string, options: GetOptions, validator: KnownValidator): Promise<string | null | undefined> {
    const question = successorQuestion(path);
    if (!question || options.accept !== undefined) return undefined;
    if (question.kind === "newest") {
      const lastRow = await this.#conditions.lastRow(validator);
      if (!lastRow) return undefined;
      const attempt = await this.#ask(question.path, options, lastRow.conditions);
      if (attempt.received.status === 304) return null;
      const newest = await this.#read(question.path, { ...options, conditional: false, anew: false }, attempt);
      return newest.kind === "ok" && (newest.body as { id?: unknown }[])[0]?.id === lastRow.id ? null : undefined;
    }
    const answer = await this.get(question.path, options);
    if (answer.kind === "unchanged") return question.path;
    if (answer.kind !== "ok" || !Array.isArray(answer.body)) return undefined;
    return answer.body.length > 0 ? question.path : null;
  }

  async graphql<T>(
    document: string,
    variables: object,
    { priority, repository, signal }: GraphqlOptions,
  ): Promise<GraphqlAnswer<T>> {
    const mutates = isMutation(document);
    const cost = this.#costs.get(document) ?? 1;
    const ask: Ask = {
      ...(await this.#seeing(repository)),
      request: {
        method: "POST",
        path: graphqlPath(this.#ctx.config.upstreamUrl),
        isAbsolute: true,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ query: document, variables }),
      },
      demand: { bucket: "graphql", api: "graphql", cost, isWrite: mutates, priority, signal },
      judge: judgeGraphql,
    };
    const { received, seenAt, refusal } = mutates ? await this.#attempt(ask) : await this.#askSafely(ask);
    if (refusal) throw refusal;
    const body = parseGraphql(received.text);
    const charged = body?.data?.rateLimit?.cost;
    if (typeof charged === "number") this.#costs.set(document, charged);
    return graphqlAnswer<T>(received, body, { seenAt, mutates });
  }

  /**
   * Who may be asked about a repository by GraphQL, where what a credential does not see is a null among other facts: an
   * installation that covers it, and the tokens that are known to see it.
   */
  async #seeing(repository: number | undefined): Promise<Pick<Ask, "credentials" | "preferred">> {
    const path = repository === undefined ? "/graphql" : `/repositories/${repository}`;
    const { all, preferred } = await this.#candidates(path, undefined);
    if (preferred.length === 0) return { credentials: this.#visibility.mayBeAsked(path, all) };
    const others = all.filter((each) => !preferred.includes(each) && this.#visibility.sees(path, each));
    return { credentials: [...preferred, ...others], preferred };
  }

  async groups(repositoryIds: readonly number[]): Promise<number[][]> {
    return await this.#keyring.groups(repositoryIds);
  }

  credentialsChanged(): void {
    this.#keyring.forget();
  }

  async tryAgain(credential: string): Promise<void> {
    await this.#quota.accept(credential);
  }

  /** As the App, within another request: what upstream answers, limits apart. */
  async #postAsApp(path: string): Promise<Received> {
    const { received, refusal } = await this.#attempt({
      credentials: [APP],
      isWithin: true,
      request: { method: "POST", path, headers: { "content-type": "application/json" }, body: "{}" },
      // GitHub docs: 5 points. Nobody sees what it creates, so it does not stand in the line of writes, a second apart.
      demand: { bucket: "core", api: "rest", cost: 1, isWrite: false, points: writePoints, priority: "caller" },
    });
    if (refusal && !(refusal instanceof CredentialRejectedError)) throw refusal;
    return received;
  }

  async write(request: WriteRequest, { signal }: { signal?: AbortSignal } = {}): Promise<RawAnswer> {
    const { method, body, contentType = "application/json", accept, apiVersion: wantedVersion } = request;
    const path = pathBelow(this.#ctx.config.upstreamUrl, request.path);
    await this.#keyring.prepare();
    const { all, preferred } = await this.#keyring.candidates(path, { writes: true });
    const { received, seenAt } = await this.#attempt({
      credentials: all,
      preferred,
      request: {
        method,
        path,
        headers: {
          ...(body === null ? {} : { "content-type": contentType }),
          ...(accept === undefined ? {} : { accept }),
          ...(wantedVersion === undefined ? {} : { "x-github-api-version": wantedVersion }),
        },
        body,
      },
      demand: { bucket: bucketOf(path), api: "rest", cost: 1, isWrite: true, priority: "caller", signal },
    });
    return { status: received.status, headers: endToEnd(received.headers), body: received.text, seenAt };
  }

  async close(): Promise<void> {
    await this.#transport.close(this.#ctx.config.shutdownMs / 2);
  }

  /** Asks what may be asked twice: repeats passing failures, and turns to another credential. Both are bounded. */
  async #askSafely(ask: Ask): Promise<Attempt> {
    let repeats = 0;
    let refusals = 0;
    for (;;) {
      const attempt = await this.#attempt(ask).catch((error: unknown) => {
        // The next lease goes to another credential.
        if (error instanceof CredentialUnusableError && ++refusals <= this.#keyring.size) return "unusable";
        const isInterrupted = error instanceof UpstreamUnavailableError && error.outage === "interrupted";
        if (!isInterrupted || repeats === maxRepeats) throw error;
        return null;
      });
      if (attempt === "unusable") continue;
      if (attempt?.refusal) {
        // The next lease goes to another credential, or says when one may be used again.
        if (++refusals > this.#keyring.size) throw attempt.refusal;
        continue;
      }
      const passes = !attempt || isPassing(attempt.received.status, ask.demand.bucket);
      if (attempt && (!passes || repeats === maxRepeats)) return attempt;
      await this.#pause(++repeats, ask.demand.signal);
    }
  }

  /** One request under one lease; a second one where the first was refused for a token that is over, or a clock that is off. */
  async #attempt(ask: Ask): Promise<Attempt> {
    using _place = ask.isWithin ? null : await this.#gate.enter(ask.demand.priority, ask.demand.signal);
    const attempt = await this.#attemptOnce(ask);
    if (!attempt.isRenewable) return attempt;
    // Upstream has done nothing, so even a write may be sent again.
    return await this.#attemptOnce({ ...ask, credentials: [attempt.credential] }, { isLast: true });
  }

  /** The budget is settled by the answer before anybody sees it. */
  async #attemptOnce(
    { request, demand, credentials, preferred, conditions, judge }: Ask,
    { isLast = false } = {},
  ): Promise<Attempt> {
    const { bucket, signal } = demand;
    const lease = await this.#quota.lease(
      credentials,
      demand,
      preferred && preferred.length > 0 ? preferred : conditions?.preferred,
    );
    const { credential } = lease;
    const authorization = await this.#authorizationFor(lease);
    const sent: Record<string, string> = {
      accept: "application/vnd.github+json",
      "user-agent": `tain/${version}`,
      "x-github-api-version": apiVersion,
      authorization,
      ...request.headers,
    };
    let seenAt = this.#ctx.clock.now();
    let condition: Condition | null = null;
    let received: Received;
    let wasSent = false;
    try {
      condition = (await conditions?.for(credential, sent)) ?? null;
      seenAt = this.#ctx.clock.now();
      wasSent = true;
      received = await this.#transport.send({ ...request, headers: { ...sent, ...condition?.headers }, signal });
    } catch (error) {
      if (error instanceof UpstreamUnavailableError && error.outage === "unreachable") wasSent = false;
      await this.#quota.settle(lease, { headers: null, charged: wasSent ? lease.cost : 0 });
      throw error;
    }

    const attempt = { received, credential, seenAt, sent, condition, isRenewable: false };
    const { status, headers } = received;
    if (status === 401) {
      if (!isLast && (await this.#keyring.renew(credential, authorization, received, seenAt))) {
        await this.#quota.settle(lease, { headers: null });
        return { ...attempt, refusal: null, isRenewable: true };
      }
      await this.#quota.reject(lease, rejectionText(credential, messageOf(received)));
      this.#ctx.log.warn({ credential }, "Upstream rejects a credential");
      return { ...attempt, refusal: new CredentialRejectedError([credential]) };
    }
    this.#keyring.learnClock(received, seenAt);
    if (installationOf(credential) !== null && isSuspension(status, messageOf(received))) {
      await this.#quota.reject(
        lease,
        "Upstream says that the installation is suspended: an owner of the account can unsuspend it",
      );
      this.#ctx.log.warn({ credential }, "An installation is suspended");
      return { ...attempt, refusal: new CredentialRejectedError([credential]) };
    }
    const { limit, charged, alsoSeen } = judge?.(received) ?? { limit: limitOf(status, headers, messageOf(received)) };
    const figures = (alsoSeen && readQuotaHeaders(alsoSeen, this.#ctx.clock.now().getTime())) ?? undefined;
    if (limit) {
      const retryAt = await this.#quota.refuse(lease, limit, headers, seenAt, figures);
      this.#ctx.log.warn({ credential, bucket, limit: limit.kind, retryAt }, "Upstream limits us");
      return { ...attempt, refusal: new QuotaSpentError(bucket, retryAt) };
    }
    // A failure's headers may be those of something on the way, which does not know of quotas.
    const isOwn = status < 500 || headers["x-ratelimit-limit"] !== undefined;
    await this.#quota.settle(lease, { headers: isOwn ? headers : null, charged, alsoSeen: figures });
    return { ...attempt, refusal: null };
  }

  /** What the credential has to show; an installation may have to ask for its token first. */
  async #authorizationFor(lease: GrantedLease): Promise<string> {
    try {
      return await this.#keyring.authorization(lease.credential);
    } catch (error) {
      if (error instanceof CredentialUnusableError) {
        await this.#quota.reject(lease, error.message);
        this.#ctx.log.warn({ credential: lease.credential, reason: error.message }, "A credential cannot be used");
      } else {
        await this.#quota.settle(lease, { headers: null, charged: 0 });
      }
      throw error;
    }
  }

  async #pause(repeat: number, signal: AbortSignal | undefined): Promise<void> {
    const meanMs = this.#limits.repeatAfterMs * 2 ** (repeat - 1);
    await sleep(meanMs * (0.5 + this.#ctx.random()), undefined, signal ? { signal } : {});
  }
}

/** Why a credential is not used for a while, and what to do, for the status. Pure. */
function rejectionText(credential: string, message: string): string {
  if (credential === APP)
    return `upstream does not accept the GitHub App's signature (${message}): see that APP_ID and APP_PRIVATE_KEY belong together`;
  if (installationOf(credential) !== null)
    return `upstream does not accept the installation's token (${message}), though it is new`;
  return "";
}

/** The bucket that a GET or write is charged to, until the answer names it. */
function bucketOf(path: string): string {
  return path.startsWith("/search/code") ? "code_search" : path.startsWith("/search/") ? "search" : "core";
}

/** Whether the same request may soon be answered. A GraphQL query that ran out of time would do so again. */
function isPassing(status: number, bucket: string): boolean {
  return status === 503 || ((status === 502 || status === 504) && bucket !== "graphql");
}
