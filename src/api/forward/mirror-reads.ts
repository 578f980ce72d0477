import { isRead } from "../../http/reply.ts";
import { decoded } from "../../http/server.ts";
import { UpstreamUnavailableError } from "../../upstream/client/errors.ts";
import type { Conditional } from "../../upstream/client/opened.ts";
import type { Answer, Call } from "../call.ts";
import type { Caller } from "../callers/permissions.ts";
import { readsRest, wholeSight } from "../callers/permissions.ts";
import { ApiFault } from "../dialect/fault.ts";
import { repositoryIn } from "../dialect/protocol.ts";
import { restrictRead } from "../view.ts";
import type { SeenRepository } from "./cache/cache.ts";
import type { TokenViewer } from "./cache/proofs.ts";
import { questionOf } from "./cache/question.ts";
import { askedBy, type CallersRequest, forwardKept, restrictedAnswerOf } from "./forwarding.ts";
import { readFault } from "./upstream-for-callers.ts";

/**
 * Paths below a repository that the mirror's own credential may read for callers: everyone who may read the repository
 * sees the same there. Three kinds of path are left out. On some, more rights show more (drafts of releases,
 * protection, alerts, traffic). Some tell about other repositories (timelines, forks, comparisons with a fork). Some
 * are settings, secrets or personal.
 */
const READ_BY_MIRROR: readonly RegExp[] = [
  /^\/(contents|readme|tarball|zipball|commits|branches)(\/|$)/,
  /^\/git\/(blobs|commits|ref|refs|matching-refs|tags|trees)\//,
  /^\/(license|languages|contributors|tags|stats\/[a-z_]+|community\/profile|codeowners\/errors|comments)$/,
  /^\/compare\/[^:]+$/,
  /^\/statuses\//,
  /^\/check-(runs|suites)\/\d+(\/annotations|\/check-runs)?$/,
  /^\/pulls\/\d+\/(commits|files)$/,
  /^\/comments\/\d+$/,
  /^\/(comments|issues|issues\/comments|pulls\/comments)\/\d+\/reactions$/,
  /^\/releases\/(latest|tags\/.+)$/,
  /^\/rules\/branches\/.+$/,
];

/** Paths with answers that may be long. These show Git's contents, and nothing that depends on the credential. */
const OF_GIT =
  /^\/(contents|readme|tarball|zipball|git|compare|license|languages)(\/|$)|^\/(commits\/[^/]+|pulls\/\d+\/(commits|files))$/;

/** Headers about the rights and the quota of the mirror's credential, which callers are not shown. */
const MIRRORS_OWN = /^X-(RateLimit-|OAuth-|Accepted-|GitHub-(SSO|OTP)$)/;
const KEPT_NOWHERE = "private, no-cache";

/**
 * Reads a path that is not mirrored with the mirror's credential, for a caller who may see its repository. Null: the
 * path may not be read so.
 * @throws ApiFault 403 for a repository that the caller is not shown, and as `UpstreamForCallers.open`
 */
export async function readByMirror(call: Call): Promise<Answer | null> {
  const named = repositoryIn(call.path);
  if (!isRead(call.method) || !named || !mayBeRead(named.rest)) return null;
  const sight = mayReadRest(call.caller) ? call.sight : wholeSight([]);
  const found = await call.ctx.mirror.repositories.at(named, sight, call.reading);
  if (!found)
    throw new ApiFault(
      403,
      "Forbidden: this mirror shows you no such repository, or no code of it, and so asks nothing.",
    );
  return await shownToMirror(call, found, named.rest);
}

/**
 * Reads a path below a repository that the caller may see, with the mirror's credential.
 * @param home the repository
 * @param rest the path behind the repository's name
 * @throws ApiFault as `UpstreamForCallers.open`
 */
export async function shownToMirror(call: Call, home: SeenRepository, rest: string): Promise<Answer> {
  const { ctx, query, gone, caller } = call;
  const path = `/repositories/${home.id}${rest}`;
  const below = `${path}${query.size > 0 ? `?${query}` : ""}`;
  const restrict = (document: Buffer) => {
    const text = document.toString();
    const shown = restrictRead(text, call, home.id);
    return shown === text ? document : Buffer.from(shown);
  };
  const asked: CallersRequest = { ...askedBy(call, below), ...(OF_GIT.test(rest) ? {} : { restrict }) };
  const send = (conditional?: Conditional) =>
    ctx.upstream.open(caller, below, { headers: headersOf(call), gone, ...(conditional && { conditional }) });
  const question = ctx.forwarded && questionOf({ ...call, path });
  const fault = (error: unknown) => readFault(error, { now: ctx.clock.now(), isLate: false, whose: "the mirror's" });
  const answer =
    ctx.forwarded && question
      ? await forwardKept(
          ctx.forwarded,
          asked,
          { question, viewer: MIRROR, home: async () => home, isFresh: call.isFresh, send },
          fault,
        )
      : await restrictedAnswerOf(asked, await send()).catch((error: unknown) => {
          throw error instanceof UpstreamUnavailableError ? fault(error) : error;
        });
  const shown = Object.entries(answer.headers ?? {}).filter(([name]) => !MIRRORS_OWN.test(name));
  return { ...answer, headers: { ...Object.fromEntries(shown), "Cache-Control": KEPT_NOWHERE } };
}

/** All callers who see the repository get what upstream shows the mirror's credential. */
const MIRROR: TokenViewer = { name: "mirror", known: null };

/**
 * Whether the caller's token may read everything in a repository. A token for some kinds alone reads the rest only in
 * public repositories.
 */
function mayReadRest(caller: Caller): boolean {
  return caller.kind === "user" && caller.by.of === "own" && readsRest(caller.by.token.kinds);
}

/** @param rest the path behind the repository's name, as it was sent. Pure. */
export function mayBeRead(rest: string): boolean {
  const plain = decoded(rest);
  // A path that is still encoded could mean another path to upstream.
  if (plain === null || /%[0-9a-f]{2}/i.test(plain) || /\/protection(\/|$)/.test(plain)) return false;
  return READ_BY_MIRROR.some((form) => form.test(plain));
}

function headersOf({ headers, version }: Call): Record<string, string> {
  const sent: Record<string, string> = { "x-github-api-version": version };
  for (const name of ["accept", "if-none-match", "if-modified-since"]) {
    const value = [headers[name] ?? ""].flat().join(", ");
    if (value !== "") sent[name] = value;
  }
  return sent;
}
