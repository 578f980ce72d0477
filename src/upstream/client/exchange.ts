import type { Stores } from "../../stores.ts";
import type { Condition, PageConditions } from "../conditional/conditions.ts";
import { APP } from "../credentials/credentials.ts";
import { installationOf } from "../credentials/installations.ts";
import type { Keyring } from "../credentials/keyring.ts";
import { messageOf } from "../protocol/answer.ts";
import {
  CredentialRejectedError,
  CredentialUnusableError,
  QuotaSpentError,
  UpstreamUnavailableError,
} from "../protocol/errors.ts";
import { type Judgement, limitOf, readQuotaHeaders } from "../protocol/headers.ts";
import { OWN_HEADERS, type Received, type Transport, type TransportRequest } from "../protocol/transport.ts";
import { isSuspension } from "../protocol/wording.ts";
import type { Demand, GrantedLease, Quota } from "../quota/quota.ts";
import type { MeteredRequest, UpstreamMeter } from "./metering.ts";
import type { Reach } from "./reach.ts";

/** One question to upstream, before a credential is chosen for it. */
export interface UpstreamRequest {
  request: Omit<TransportRequest, "signal">;
  demand: Demand;
  /** The credentials that may be asked. */
  credentials: readonly string[];
  /** The credentials that are tried first. */
  preferred?: readonly string[];
  /** The question is part of another question, and uses its place among the requests under way. */
  isWithin?: true;
  conditions?: PageConditions;
  judge?: (received: Received) => Judgement;
}

interface SettledExchange {
  lease: GrantedLease;
  received: Received;
  seenAt: Date;
  /** The request's headers, without those of the condition. */
  sent: Record<string, string> & { authorization: string };
  condition: Condition | null;
}

export interface Attempt extends Omit<SettledExchange, "lease"> {
  credential: string;
  /**
   * Why the credential may not be used now; a repeatable request then goes to another credential. Null: it was
   * accepted.
   */
  refusal: Error | null;
}

export interface ExchangeContext extends Pick<Stores, "clock" | "log"> {
  keyring: Keyring;
  meter: UpstreamMeter;
  quota: Quota;
  transport: Transport;
  reach: Reach;
}

/**
 * Sends one request under one lease, and settles the lease before the caller sees the answer. If upstream refuses an
 * expired token or a wrong clock, a second request follows.
 */
export async function exchange(ctx: ExchangeContext, ask: UpstreamRequest): Promise<Attempt> {
  const first = await sendLeased(ctx, ask);
  if (first.received.status !== 401 || !(await renew(ctx, first))) return await settleLease(ctx, ask, first);
  // Upstream rejected the credential and so did nothing. Even a write may be sent again.
  return await settleLease(ctx, ask, await sendLeased(ctx, { ...ask, credentials: [first.lease.credential] }));
}

async function sendLeased(ctx: ExchangeContext, ask: UpstreamRequest): Promise<SettledExchange> {
  const { request, demand, credentials, preferred, conditions } = ask;
  const first = preferred && preferred.length > 0 ? preferred : conditions?.preferred;
  const lease = await ctx.quota.lease(credentials, demand, first);
  const sent = {
    ...OWN_HEADERS,
    authorization: await authorizationFor(ctx, lease, demand.signal),
    ...request.headers,
  };
  let isCharged = false;
  try {
    const condition = (await conditions?.for(lease.credential, sent)) ?? null;
    const seenAt = ctx.clock.now();
    isCharged = true;
    const headers = { ...sent, ...condition?.headers };
    const startedAt = performance.now();
    const received = await ctx.transport.send({ ...request, headers, signal: demand.signal });
    ctx.reach.answered();
    ctx.meter.answered(meteredOf(ask), received.status, startedAt);
    return { lease, received, seenAt, sent, condition };
  } catch (error) {
    if (error instanceof UpstreamUnavailableError) ctx.reach.failed(error);
    if (error instanceof UpstreamUnavailableError && error.outage === "unreachable") isCharged = false;
    await ctx.quota.settle(lease, { headers: null, charged: isCharged ? lease.cost : 0 });
    throw error;
  }
}

function meteredOf({ request, demand }: UpstreamRequest): MeteredRequest {
  return { path: request.path, bucket: demand.bucket, class: demand.priority, caller: demand.caller };
}

/** The credential's Authorization header; an installation may have to get its token first. */
async function authorizationFor(
  { keyring, quota, log }: ExchangeContext,
  lease: GrantedLease,
  signal: AbortSignal | undefined,
): Promise<string> {
  try {
    return await keyring.authorization(lease.credential, signal);
  } catch (error) {
    if (error instanceof CredentialUnusableError) {
      await quota.reject(lease, error.message);
      log.warn({ credential: lease.credential, reason: error.message }, "A credential cannot be used");
    } else {
      await quota.settle(lease, { headers: null, charged: 0 });
    }
    throw error;
  }
}

/** Whether the credential has a newer string than the one that upstream has just rejected. */
async function renew({ keyring, quota }: ExchangeContext, answered: SettledExchange): Promise<boolean> {
  const { lease, sent, received, seenAt } = answered;
  if (!(await keyring.renew(lease.credential, sent.authorization, received, seenAt))) return false;
  await quota.settle(lease, { headers: null });
  return true;
}

/** Corrects the budget by the answer. */
async function settleLease(
  { keyring, quota, meter, clock, log }: ExchangeContext,
  ask: UpstreamRequest,
  { lease, ...answered }: SettledExchange,
): Promise<Attempt> {
  const { judge } = ask;
  const { bucket } = ask.demand;
  const { received, seenAt } = answered;
  const { status, headers } = received;
  const { credential } = lease;
  const attempt = { ...answered, credential };
  if (status === 401) {
    await quota.reject(lease, rejectionText(credential, messageOf(received)));
    log.warn({ credential }, "Upstream rejects a credential");
    return { ...attempt, refusal: new CredentialRejectedError([credential]) };
  }
  keyring.learnClock(received, seenAt);
  if (installationOf(credential) !== null && isSuspension(status, messageOf(received))) {
    await quota.reject(
      lease,
      "Upstream says that the installation is suspended: an owner of the account can unsuspend it",
    );
    log.warn({ credential }, "An installation is suspended");
    return { ...attempt, refusal: new CredentialRejectedError([credential]) };
  }
  const { limit, charged, alsoSeen } = judge?.(received) ?? { limit: limitOf(status, headers, messageOf(received)) };
  const figures = (alsoSeen && readQuotaHeaders(alsoSeen, clock.now().getTime())) ?? undefined;
  if (limit) {
    const retryAt = await quota.refuse(lease, limit, headers, seenAt, figures);
    log.warn({ credential, bucket, limit: limit.kind, retryAt }, "Upstream limits us");
    return { ...attempt, refusal: new QuotaSpentError(bucket, retryAt) };
  }
  // A failure may come from a proxy on the way, whose headers say nothing of quotas.
  meter.charged(meteredOf(ask), charged ?? lease.cost);
  const isOwn = status < 500 || headers["x-ratelimit-limit"] !== undefined;
  await quota.settle(lease, { headers: isOwn ? headers : null, charged, alsoSeen: figures });
  return { ...attempt, refusal: null };
}

/** The status' sentence about a rejected credential: the reason, and what to do. Pure. */
function rejectionText(credential: string, message: string): string {
  if (credential === APP)
    return `upstream does not accept the GitHub App's signature (${message}): see that APP_ID and APP_PRIVATE_KEY belong together`;
  if (installationOf(credential) !== null)
    return `upstream does not accept the installation's token (${message}), though it is new`;
  return "";
}
