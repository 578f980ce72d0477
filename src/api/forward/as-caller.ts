import { levelOf } from "../../failure.ts";
import { isRead } from "../../http/reply.ts";
import { decoded } from "../../http/router.ts";
import type { UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import type { Conditional } from "../../upstream/protocol/opened.ts";
import { isSafePath } from "../../upstream/protocol/paths.ts";
import type { Answer, Call } from "../call/call.ts";
import type { User } from "../callers/permissions.ts";
import { readFault } from "../callers/upstream-for-callers.ts";
import { notFound } from "../dialect/fault.ts";
import type { SeenRepository } from "./cache/cache.ts";
import type { CacheableRead } from "./cache/forwarded-answers.ts";
import { writeForwarder } from "./forwarded-writes.ts";
import { arrivingAnswer, askedBy, forward, forwardKept, opened, unanswered } from "./forwarding.ts";
import { questionOf } from "./question.ts";
import { touchedAt } from "./touched.ts";

/**
 * Asks upstream, with the caller's own token, for a resource that this mirror does not serve. The caller's validators
 * go along, so an unchanged answer costs them nothing. The cache of upstream's answers may answer a read. Null: the
 * caller has no token of upstream's. Resources that a write touched are read again before its answer leaves.
 * @throws ApiFault 502 or 504 when upstream gives no answer that can be forwarded
 */
export async function forwardAsCaller(call: Call): Promise<Answer | null> {
  const { caller } = call;
  if (caller.kind !== "user" || caller.by.of !== "upstream" || !isOfDialect(call.path)) return null;
  // The mirror answers any path that it can. Only what is sent on has to lead to the same place everywhere.
  if (!isSafePath(call.path)) throw notFound();
  const path = `${call.path}${call.query.size > 0 ? `?${call.query}` : ""}`;
  if (isRead(call.method)) return await forwardRead(call, caller.by, path);
  const recorded = { method: call.method, route: null, path, repositoryId: null };
  const touched = await touchedAt(call);
  const send = await writeForwarder({ ...call, caller }, recorded, caller.by.forward, { touched });
  return await forward(askedBy(call, byId(path, touched) ?? path), send);
}

/** The path by the id of its mirrored repository: the name may be another's by now. Null: it is not mirrored. */
function byId(path: string, [touched]: Awaited<ReturnType<typeof touchedAt>>): string | null {
  const [, rest] = /^\/repos\/[^/]+\/[^/?]+(.*)$/s.exec(path) ?? [];
  return touched && rest !== undefined ? `/repositories/${touched.repository.id}${rest}` : null;
}

/** Forwards a read, through the cache if its answer may be kept. */
async function forwardRead(
  call: Call,
  { forward: send, fingerprint, known }: OfUpstream,
  path: string,
): Promise<Answer> {
  const { ctx, isFresh } = call;
  const asked = askedBy(call, path);
  const question = ctx.forwarded && questionOf(call);
  if (!ctx.forwarded || !question) return await forward(asked, send);
  const fault = (error: UpstreamUnavailableError) => unanswered(error, asked.method);
  const viewer = { name: fingerprint, known };
  const ask = (conditional: Conditional) => opened(asked, send, fault, conditional);
  const asking = { question, viewer, home: () => findHome(call, question), isFresh, send: ask };
  return await forwardKept(ctx.forwarded, asked, asking, fault);
}

/** The mirrored repository that the question leads to, if the caller sees it. */
async function findHome({ ctx, access, reading }: Call, question: CacheableRead): Promise<SeenRepository | null> {
  try {
    return await ctx.mirror.repositories.at(question, access, reading);
  } catch (error) {
    ctx.log[levelOf(error, "warn")](
      { err: error },
      "A repository cannot be looked up: upstream is asked as if nothing were kept",
    );
    return null;
  }
}

type OfUpstream = Extract<User["by"], { of: "upstream" }>;

/**
 * Reads a mirrored resource at upstream with the caller's own token. Nothing is kept.
 * @throws ApiFault 502 or 504 when upstream gives no answer that can be forwarded
 */
export async function shownByUpstream(
  call: Call,
  by: OfUpstream,
  path: string,
): Promise<{ shown: Answer } | { notFresh: string; status: number }> {
  const { ctx } = call;
  const confirmedAt = ctx.clock.now();
  const asked = askedBy(call, path);
  const received = await opened(asked, by.forward, (error) =>
    readFault(error, { now: ctx.clock.now(), isLate: false, whose: "your" }),
  );
  const { status } = received;
  const isShown = (status >= 200 && status <= 299) || status === 304;
  if (isShown) {
    const answer = arrivingAnswer(asked, received);
    // On mirrored routes callers see their quota at the mirror, not at upstream: some clients stop at the first 0 that
    // they see.
    const headers = Object.entries(answer.headers ?? {}).filter(([name]) => !name.startsWith("X-RateLimit-"));
    return { shown: { ...answer, headers: Object.fromEntries(headers), confirmedAt } };
  }
  received.body.destroy();
  const isMoved = status >= 300 && status <= 399;
  return { notFresh: isMoved ? "upstream says that it has moved" : `upstream answers ${status}`, status };
}

/**
 * Whether upstream's API may have the path. Below `/-/` another Tain has its operator's pages, open to requests from
 * its own machine.
 */
function isOfDialect(path: string): boolean {
  return !/^[/\\]*-(\/|$)/.test(decoded(path) ?? "/-/");
}
