import { version } from "../../operations/version.ts";
import type { Stores } from "../../stores.ts";
import type { Condition, PageConditions } from "../conditional/conditions.ts";
import { APP } from "../credentials/credentials.ts";
import { installationOf } from "../credentials/installations.ts";
import type { Keyring } from "../credentials/keyring.ts";
import { type Judgement, limitOf, readQuotaHeaders } from "../quota/headers.ts";
import type { Demand, GrantedLease, Quota } from "../quota/quota.ts";
import { messageOf } from "./answer.ts";
import {
  CredentialRejectedError,
  CredentialUnusableError,
  QuotaSpentError,
  UpstreamUnavailableError,
} from "./errors.ts";
import type { Received, Transport } from "./transport.ts";
import type { WriteRequest } from "./upstream.ts";
import { isSuspension } from "./wording.ts";

/** The version of the dialect that the mirror stores. */
const API_VERSION = "2022-11-28";

/** One question to upstream, before a credential is chosen for it. */
export interface Ask {
  request: {
    method: "GET" | WriteRequest["method"];
    path: string;
    isAbsolute?: boolean;
    headers: Record<string, string>;
    body?: string | null;
  };
  demand: Demand;
  /** The credentials that may be asked. */
  credentials: readonly string[];
  /** Those of them that go first. */
  preferred?: readonly string[];
  /** The question is part of another one, and takes that one's place among the requests under way. */
  isWithin?: true;
  conditions?: PageConditions;
  judge?: (received: Received) => Judgement;
}

/** The request's headers, the condition's apart. */
type SentHeaders = Record<string, string> & { authorization: string };

/** A request that was answered. */
interface Answered {
  lease: GrantedLease;
  received: Received;
  seenAt: Date;
  sent: SentHeaders;
  condition: Condition | null;
}

export interface Attempt extends Omit<Answered, "lease"> {
  credential: string;
  /** Set when the credential may not be used now, and so a request that may be repeated goes to another. */
  refusal: Error | null;
}

/** Sends one request under one lease, and tells the budget how it ended before the caller sees the answer. */
export class Exchange {
  readonly #ctx: Pick<Stores, "clock" | "log">;
  readonly #keyring: Keyring;
  readonly #quota: Quota;
  readonly #transport: Transport;

  constructor(
    ctx: Pick<Stores, "clock" | "log">,
    { keyring, quota, transport }: { keyring: Keyring; quota: Quota; transport: Transport },
  ) {
    this.#ctx = ctx;
    this.#keyring = keyring;
    this.#quota = quota;
    this.#transport = transport;
  }

  /** Sends a second request where the first was refused for a token that is over, or a clock that is off. */
  async run(ask: Ask): Promise<Attempt> {
    const first = await this.#send(ask);
    if (first.received.status !== 401 || !(await this.#renew(first))) return await this.#settle(ask, first);
    // Upstream has done nothing, so even a write may be sent again.
    return await this.#settle(ask, await this.#send({ ...ask, credentials: [first.lease.credential] }));
  }

  async #send({ request, demand, credentials, preferred, conditions }: Ask): Promise<Answered> {
    const first = preferred && preferred.length > 0 ? preferred : conditions?.preferred;
    const lease = await this.#quota.lease(credentials, demand, first);
    const sent: SentHeaders = {
      accept: "application/vnd.github+json",
      "user-agent": `tain/${version}`,
      "x-github-api-version": API_VERSION,
      authorization: await this.#authorizationFor(lease),
      ...request.headers,
    };
    let isCharged = false;
    try {
      const condition = (await conditions?.for(lease.credential, sent)) ?? null;
      const seenAt = this.#ctx.clock.now();
      isCharged = true;
      const headers = { ...sent, ...condition?.headers };
      const received = await this.#transport.send({ ...request, headers, signal: demand.signal });
      return { lease, received, seenAt, sent, condition };
    } catch (error) {
      if (error instanceof UpstreamUnavailableError && error.outage === "unreachable") isCharged = false;
      await this.#quota.settle(lease, { headers: null, charged: isCharged ? lease.cost : 0 });
      throw error;
    }
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

  /** Whether the credential has something newer to show than what upstream has just rejected. */
  async #renew({ lease, sent, received, seenAt }: Answered): Promise<boolean> {
    if (!(await this.#keyring.renew(lease.credential, sent.authorization, received, seenAt))) return false;
    await this.#quota.settle(lease, { headers: null });
    return true;
  }

  /** Tells the budget what the answer means for it. */
  async #settle({ demand: { bucket }, judge }: Ask, { lease, ...answered }: Answered): Promise<Attempt> {
    const { received, seenAt } = answered;
    const { status, headers } = received;
    const { credential } = lease;
    const attempt = { ...answered, credential };
    if (status === 401) {
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
    // A failure may come from a proxy on the way, whose headers say nothing of quotas.
    const isOwn = status < 500 || headers["x-ratelimit-limit"] !== undefined;
    await this.#quota.settle(lease, { headers: isOwn ? headers : null, charged, alsoSeen: figures });
    return { ...attempt, refusal: null };
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
