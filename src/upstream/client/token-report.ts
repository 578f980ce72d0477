import { objectOf, textOf } from "../../json.ts";
import type { Stores } from "../../stores.ts";
import { fingerprint } from "../credentials/credentials.ts";
import { failureOf } from "../protocol/answer.ts";
import {
  CredentialRejectedError,
  GraphqlTooHeavyError,
  QuotaSpentError,
  UpstreamRefusedError,
} from "../protocol/errors.ts";
import { asSent, list } from "../protocol/field-readers.ts";
import { RATE_LIMIT } from "../protocol/graphql.ts";
import { ONE_REQUEST, OWN_HEADERS, type Received, Transport } from "../protocol/transport.ts";
import { openUpstream } from "./client.ts";

/** Upstream's answers about one token, without the token itself. */
export interface TokenReport {
  fingerprint: string;
  /** "rejected": upstream does not accept it. "spent": a limit keeps us from asking more. */
  state: "accepted" | "rejected" | "spent";
  /** The token's user; null for an app's token, which has none, or while upstream cannot be asked. */
  login: string | null;
  /** The scopes of a classic token. Null for fine-grained and app tokens, for which upstream does not list them. */
  scopes: string[] | null;
  /** By bucket; empty where upstream limits nothing. */
  quota: { bucket: string; limit: number; remaining: number; resetAt: Date }[];
  /** How far upstream's clock is ahead of ours, to a second. Null: its answer had no date. */
  aheadMs: number | null;
  /** The full names among those asked about that the token does not see; null if that could not be asked. */
  unseen: string[] | null;
  unseenUnknown: string | null;
}

const BUCKETS: readonly string[] = ["core", "graphql", "search"];
const REPOSITORIES_A_BATCH = 100;

/**
 * Asks upstream for the token's user, its rights, and the repositories that it sees: one request, and a point for each
 * hundred repositories.
 * @throws UpstreamUnavailableError
 */
export async function reportToken(
  ctx: Stores,
  token: string,
  repositories: readonly { nodeId: string; fullName: string }[],
): Promise<TokenReport> {
  const askedAt = ctx.clock.now().getTime();
  const received = await askLimits(ctx, token);
  const now = ctx.clock.now().getTime();
  const { status, headers } = received;
  const date = Date.parse(String(headers.date ?? ""));
  const scopes = typeof headers["x-oauth-scopes"] === "string" ? headers["x-oauth-scopes"] : null;
  const report: TokenReport = {
    fingerprint: fingerprint(token),
    state: status === 401 ? "rejected" : status === 403 || status === 429 ? "spent" : "accepted",
    login: null,
    scopes:
      scopes
        ?.split(",")
        .map((scope) => scope.trim())
        .filter(Boolean) ?? null,
    quota: status === 200 ? readLimits(received.text) : [],
    // Date is cut to whole seconds, so it is half a second late on average.
    aheadMs: Number.isNaN(date) ? null : date + 500 - (askedAt + now) / 2,
    unseen: null,
    unseenUnknown: "upstream does not accept it",
  };
  // GitHub docs: an enterprise server without limits answers 404 here, which is no error.
  if (status >= 500 || (status >= 300 && ![401, 403, 404, 429].includes(status)))
    throw failureOf("/rate_limit", received);
  if (report.state !== "accepted")
    return { ...report, unseenUnknown: report.state === "spent" ? "a limit of upstream's" : report.unseenUnknown };

  const config = { ...ctx.config, upstreamTokens: [token], appId: null, appPrivateKey: null };
  const upstream = openUpstream({ ...ctx, config }, { isCommand: true });
  try {
    return { ...report, ...(await askUser(upstream)), ...(await askVisible(upstream, repositories)) };
  } finally {
    await upstream.close();
  }
}

/** GitHub docs: this request is free, so it takes no lease, and it is answered even when the quota is spent. */
async function askLimits({ config }: Pick<Stores, "config">, token: string): Promise<Received> {
  const transport = new Transport(config.upstreamUrl, ONE_REQUEST);
  try {
    return await transport.send({
      method: "GET",
      path: "/rate_limit",
      headers: { ...OWN_HEADERS, authorization: `Bearer ${token}` },
    });
  } finally {
    await transport.close(1_000);
  }
}

function readLimits(text: string): TokenReport["quota"] {
  const resources = objectOf(objectOf(JSON.parse(text)).resources);
  return BUCKETS.flatMap((bucket) => {
    const { limit, remaining, reset } = objectOf(resources[bucket]);
    if (typeof limit !== "number" || typeof remaining !== "number" || typeof reset !== "number") return [];
    return [{ bucket, limit, remaining, resetAt: new Date(reset * 1_000) }];
  });
}

type OpenUpstream = ReturnType<typeof openUpstream>;

async function askUser(upstream: OpenUpstream): Promise<Pick<TokenReport, "login"> & Partial<TokenReport>> {
  try {
    const answer = await upstream.get("/user", { priority: "caller" });
    return { login: answer.kind === "ok" ? textOf(objectOf(answer.body).login) : null };
  } catch (error) {
    // An app's token has no user.
    if (error instanceof UpstreamRefusedError) return { login: null };
    // The token may have been accepted a moment ago, and may still be left alone for an earlier refusal.
    if (error instanceof CredentialRejectedError) return { login: null, state: "rejected" };
    if (error instanceof QuotaSpentError) return { login: null, state: "spent" };
    throw error;
  }
}

async function askVisible(
  upstream: OpenUpstream,
  repositories: readonly { nodeId: string; fullName: string }[],
): Promise<Pick<TokenReport, "unseen" | "unseenUnknown">> {
  const unseen: string[] = [];
  for (let at = 0; at < repositories.length; at += REPOSITORIES_A_BATCH) {
    const some = repositories.slice(at, at + REPOSITORIES_A_BATCH);
    try {
      const { data, errors } = await upstream.graphql(
        `query ($ids: [ID!]!) { nodes(ids: $ids) { id } ${RATE_LIMIT} }`,
        { ids: some.map(({ nodeId }) => nodeId) },
        { priority: "caller" },
      );
      const unknown = errors.find(({ type }) => type !== "NOT_FOUND" && type !== "FORBIDDEN");
      if (unknown) return { unseen: null, unseenUnknown: unknown.message };
      const nodes = list(asSent)(data.nodes, "nodes");
      unseen.push(...some.filter((_, index) => !nodes[index]).map(({ fullName }) => fullName));
    } catch (error) {
      const isExpected =
        error instanceof UpstreamRefusedError ||
        error instanceof QuotaSpentError ||
        error instanceof CredentialRejectedError ||
        error instanceof GraphqlTooHeavyError;
      if (!isExpected) throw error;
      return { unseen: null, unseenUnknown: error.message };
    }
  }
  return { unseen, unseenUnknown: null };
}
