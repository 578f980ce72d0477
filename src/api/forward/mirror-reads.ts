import { isRead } from "../../http/reply.ts";
import { decoded } from "../../http/router.ts";
import { CODE_RIGHTS, type Right } from "../../kinds/contract/rights.ts";
import { areHeadsSeen } from "../../mirror/read/pulls.ts";
import { UpstreamUnavailableError } from "../../upstream/protocol/errors.ts";
import type { Conditional } from "../../upstream/protocol/opened.ts";
import { isSafePath } from "../../upstream/protocol/paths.ts";
import type { Answer, Call } from "../call/call.ts";
import { restrictRead } from "../call/view.ts";
import type { Caller } from "../callers/permissions.ts";
import { requireRights, wholeAccess } from "../callers/permissions.ts";
import { readFault } from "../callers/upstream-for-callers.ts";
import { ApiFault } from "../dialect/fault.ts";
import { repositoryIn } from "../dialect/protocol.ts";
import type { SeenRepository } from "./cache/cache.ts";
import type { TokenViewer } from "./cache/proofs.ts";
import { askedBy, type CallersRequest, forwardKept, restrictedAnswerOf } from "./forwarding.ts";
import { questionOf } from "./question.ts";

/** The rights that a path takes. All of them are needed, and no path takes none. */
type TakenRights = readonly [Right, ...Right[]];

/** A form of paths behind a repository's name, with what a caller of ours needs to be shown their answers. */
interface ReadForm {
  takes: TakenRights;
  form: RegExp;
}

/** For a path of which nobody can say what it shows. */
const EVERY_RIGHT: TakenRights = ["issues", "pulls", ...CODE_RIGHTS];

/**
 * Paths below a repository that the mirror's own credential may read for callers: everyone with the named rights sees
 * the same there. Three kinds of path are left out. On some, more rights show more (drafts of releases, protection,
 * alerts, traffic). Some tell about other repositories (timelines, forks, comparisons with a fork). Some are settings,
 * secrets or personal.
 *
 * The rights are those of the service's table (GitHub docs, "Permissions required for fine-grained personal access
 * tokens"). A path that the table has in two places takes both. The first form that fits counts.
 */
const READ_BY_MIRROR: readonly ReadForm[] = [
  { takes: ["pulls", "contents"], form: /^\/commits\/.+\/pulls$/ },
  { takes: ["checks"], form: /^\/commits\/.+\/check-(runs|suites)$/ },
  { takes: ["statuses"], form: /^\/commits\/.+\/status(es)?$/ },
  { takes: ["contents"], form: /^\/commits\/.+\/(comments|branches-where-head)$/ },
  { takes: ["contents"], form: /^\/commits(\/[^/]+)?$/ },
  // A ref may hold slashes, so a longer path may be a commit or an operation that upstream gets tomorrow.
  { takes: EVERY_RIGHT, form: /^\/commits\// },
  { takes: ["contents"], form: /^\/(contents|readme|tarball|zipball|branches)(\/|$)/ },
  { takes: ["contents"], form: /^\/git\/(blobs|commits|ref|refs|matching-refs|tags|trees)\// },
  { takes: ["contents"], form: /^\/(license|community\/profile|codeowners\/errors)$/ },
  { takes: ["metadata"], form: /^\/(languages|contributors|tags|stats\/[a-z_]+)$/ },
  { takes: ["contents"], form: /^\/compare\/[^:]+$/ },
  { takes: ["statuses"], form: /^\/statuses\// },
  { takes: ["actions"], form: /^\/actions\/(workflows|runs|jobs)(\/[^/]+)?$/ },
  { takes: ["actions"], form: /^\/actions\/workflows\/[^/]+\/runs$/ },
  { takes: ["actions"], form: /^\/actions\/runs\/\d+\/(jobs|artifacts|attempts\/\d+(\/jobs)?)$/ },
  { takes: ["checks"], form: /^\/check-(runs|suites)\/\d+(\/annotations|\/check-runs)?$/ },
  { takes: ["pulls"], form: /^\/pulls\/\d+\/(commits|files)$/ },
  // Events about these take the right to code here, which is more than the service's table asks.
  { takes: ["contents"], form: /^\/comments(\/\d+(\/reactions)?)?$/ },
  // The path does not tell whether the number, or the comment, is an issue's or a pull request's.
  { takes: ["issues", "pulls"], form: /^\/(issues|issues\/comments)\/\d+\/reactions$/ },
  { takes: ["pulls"], form: /^\/pulls\/comments\/\d+\/reactions$/ },
  { takes: ["contents"], form: /^\/releases\/(latest|tags\/.+)$/ },
  { takes: ["metadata"], form: /^\/rules\/branches\/.+$/ },
];

/** Paths with answers that may be long. These show Git's contents, and nothing that depends on the credential. */
const OF_GIT =
  /^\/(contents|readme|tarball|zipball|git|compare|license|languages)(\/|$)|^\/(commits\/[^/]+|pulls\/\d+\/(commits|files))$/;

/** Headers about the rights and the quota of the mirror's credential, which callers are not shown. */
const MIRRORS_OWN = /^X-(RateLimit-|OAuth-|Accepted-|GitHub-(SSO|OTP)$)/;
const KEPT_NOWHERE = "private, no-cache";

/**
 * Reads a path that is not mirrored with the mirror's credential, for a caller who may see its repository and has the
 * rights that the path takes. Null: the path may not be read so.
 * @throws ApiFault 403 for a repository that the caller is not shown, or a right that they lack, and as
 * `UpstreamForCallers.open`
 */
export async function readByMirror(call: Call): Promise<Answer | null> {
  const named = repositoryIn(call.path);
  const takes = isRead(call.method) && named && isSafePath(call.path) ? rightsOf(named.rest) : null;
  if (!named || !takes) return null;
  const access = isOwnTokens(call.caller) ? call.access : wholeAccess([]);
  const found = await call.ctx.mirror.repositories.at(named, access, call.reading);
  if (!found) throw new ApiFault(403, "Forbidden: this mirror shows you no such repository, and so asks nothing.");
  requireRights({ ...call, access, repository: found }, takes);
  return await shownToMirror({ ...call, access }, found, named.rest);
}

/**
 * Upstream shows the mirror's credential every pull request's changes, also those of a private head that the caller is
 * not shown: by the pull request, by its refs (`pull/1/head`), and by its commits.
 * @throws ApiFault 403
 */
async function requireSeenHeads({ ctx, access, query }: Call, home: SeenRepository, rest: string): Promise<void> {
  const asked = [decoded(rest) ?? rest, ...query.values()];
  const numbers = asked.flatMap((text) =>
    [...text.matchAll(/\bpulls?\/0*(\d{1,9})(?!\d)/g)].map(([, number]) => Number(number)),
  );
  const words = home.isPrivate
    ? asked.flatMap((text) => text.toLowerCase().match(/(?<![a-z\d])[a-f\d]{4,40}(?![a-z\d])/g) ?? [])
    : [];
  if (numbers.length + words.length === 0) return;
  if (await areHeadsSeen(ctx.db, home.id, { numbers, words }, access)) return;
  throw new ApiFault(403, "Forbidden: this comes from a repository that this mirror does not show you.");
}

/**
 * Reads a path below a repository that the caller may see, with the mirror's credential.
 * @param home the repository
 * @param rest the path behind the repository's name
 * @throws ApiFault as `UpstreamForCallers.open`
 */
export async function shownToMirror(call: Call, home: SeenRepository, rest: string): Promise<Answer> {
  const { ctx, query, gone, caller } = call;
  await requireSeenHeads(call, home, rest);
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

/** Whether the caller shows one of our own tokens, which can be for private repositories. */
function isOwnTokens(caller: Caller): boolean {
  return caller.kind === "user" && caller.by.of === "own";
}

/**
 * The rights that a path takes. Null: the mirror's credential may not read it for others.
 * @param rest the path behind the repository's name, as it was sent. Pure.
 */
export function rightsOf(rest: string): TakenRights | null {
  const plain = decoded(rest);
  // A path that is still encoded could mean another path to upstream.
  if (plain === null || /%[0-9a-f]{2}/i.test(plain) || /\/protection(\/|$)/.test(plain)) return null;
  return READ_BY_MIRROR.find(({ form }) => form.test(plain))?.takes ?? null;
}

function headersOf({ headers, version }: Call): Record<string, string> {
  const sent: Record<string, string> = { "x-github-api-version": version };
  for (const name of ["accept", "if-none-match", "if-modified-since", "x-github-next-global-id"]) {
    const value = [headers[name] ?? ""].flat().join(", ");
    if (value !== "") sent[name] = value;
  }
  return sent;
}
