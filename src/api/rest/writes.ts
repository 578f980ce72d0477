import { findIssue } from "../../mirror/find-issues.ts";
import { findPull } from "../../mirror/find-pulls.ts";
import { observe, type Sighting } from "../../mirror/observation.ts";
import type { StoredDocument } from "../../mirror/rendering.ts";
import { mergeObserved } from "../../mirror/store.ts";
import type { Fields, Json } from "../../mirror/template.ts";
import type { RawAnswer } from "../../upstream/client.ts";
import { CredentialRejectedError, QuotaSpentError, UpstreamUnavailableError } from "../../upstream/errors.ts";
import type { Answer, ApiContext, RepositoryCall } from "../call.ts";
import { requireUser } from "../call.ts";
import { type Caller, mayWrite } from "../caller.ts";
import { ApiFault } from "../fault.ts";
import { showOne } from "../view.ts";

type Created = "issue" | "pull_request";
const COLLECTIONS: Record<Created, string> = { issue: "issues", pull_request: "pulls" };

// GitHub was seen to send these with POST and PATCH of issues under 2022-11-28, whose `assignee` the next version drops.
const DEPRECATION = { Deprecation: "Tue, 10 Mar 2026 00:00:00 GMT", Sunset: "Fri, 10 Mar 2028 00:00:00 GMT" };
const DEPRECATION_LINK =
  '<https://docs.github.com/en/rest/about-the-rest-api/api-versions>; rel="deprecation"; type="text/html"';

export async function postIssue(call: RepositoryCall): Promise<Answer> {
  const answer = await create(call, "issue");
  return call.version === "2022-11-28"
    ? { ...answer, headers: { ...answer.headers, ...DEPRECATION }, link: DEPRECATION_LINK }
    : answer;
}

export async function postPull(call: RepositoryCall): Promise<Answer> {
  return create(call, "pull_request");
}

/** Passes the write on, once, and answers from the mirror, which then holds what was made. */
async function create(call: RepositoryCall, kind: Created): Promise<Answer> {
  requireWriter(call);
  requireJsonObject(call.body);
  const { ctx, repository } = call;
  const answer = await passOn(
    { ...ctx, caller: call.caller },
    `/repos/${repository.fullName}/${COLLECTIONS[kind]}`,
    call.body,
  );
  if (answer.status < 200 || answer.status > 299) return asItIs(call, answer);

  let number: number;
  try {
    number = await store(ctx, kind, call, answer);
  } catch (error) {
    // Upstream has done it. To answer with a failure would make the caller do it twice.
    ctx.log.error(
      { err: error, requestId: call.requestId, repository: repository.fullName },
      "A write took effect at upstream and could not be stored",
    );
    return asItIs(call, answer);
  }
  const made = await findCreated(ctx, kind, repository.id, number);
  if (!made) return asItIs(call, answer);
  return {
    status: 201,
    body: await showOne(call, made),
    headers: { Location: `${call.api}/repos/${repository.fullName}/${COLLECTIONS[kind]}/${number}` },
  };
}

/** @throws ApiFault 401 for anonymous callers, 403 for tokens that only read */
function requireWriter(call: RepositoryCall): void {
  if (mayWrite(requireUser(call), call.repository.id)) return;
  throw new ApiFault(403, "Resource not accessible by personal access token");
}

function requireJsonObject(body: string): void {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (cause) {
    throw new ApiFault(400, "Problems parsing JSON", { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ApiFault(400, "Body should be a JSON object");
}

/**
 * Sends a write to upstream. A redirect says that it was not done and where it belongs, so that one is followed, once.
 * @throws ApiFault 502, 503 or 504 that says what is known of its effect; it is never sent again
 */
export async function passOn(
  { upstream, config, clock, caller }: Pick<ApiContext, "upstream" | "config" | "clock"> & { caller: Caller },
  path: string,
  body: string,
): Promise<RawAnswer> {
  // As the caller where they have shown a token of upstream's; otherwise as the owner of the mirror's.
  const own = caller.kind === "user" && caller.by.of === "upstream" ? caller.by.write : null;
  const write = own ?? upstream.write.bind(upstream);
  try {
    const answer = await write({ method: "POST", path, body });
    const isRedirect = answer.status === 307 || answer.status === 308 || answer.status === 301;
    const location = answer.headers.location;
    if (!isRedirect || typeof location !== "string" || !location.startsWith(`${config.upstreamUrl}/`))
      return own ? answer : rejected(answer);
    return rejected(await write({ method: "POST", path: location.slice(config.upstreamUrl.length), body }));
  } catch (error) {
    throw writeFault(error, clock.now());
  }
}

/** The 401 is about the mirror's credential; passed on, it would tell callers that theirs is bad. */
function rejected(answer: RawAnswer): RawAnswer {
  if (answer.status === 401) throw new CredentialRejectedError([]);
  return answer;
}

function writeFault(error: unknown, now: Date): unknown {
  const documentationUrl = "https://docs.github.com/rest";
  if (error instanceof QuotaSpentError) {
    const seconds = Math.max(1, Math.ceil((error.resetAt.getTime() - now.getTime()) / 1_000));
    return new ApiFault(503, "The mirror's quota at upstream is spent. Nothing was sent, and nothing was queued.", {
      documentationUrl,
      headers: { "Retry-After": String(seconds) },
      cause: error,
    });
  }
  if (error instanceof CredentialRejectedError) {
    return new ApiFault(502, "Upstream rejects the mirror's credential. Nothing was done, and nothing was queued.", {
      documentationUrl,
      cause: error,
    });
  }
  if (!(error instanceof UpstreamUnavailableError)) return error;
  if (error.outage === "unreachable") {
    return new ApiFault(502, "Upstream cannot be reached. Nothing was done, and nothing was queued.", {
      documentationUrl,
      cause: error,
    });
  }
  const [status, what] =
    error.outage === "timed-out" ? [504, "did not answer in time"] : [502, "gave no answer that can be read"];
  return new ApiFault(
    status as number,
    `Upstream ${what}. Whether it did what was asked is not known; nothing was queued, and it is not sent again.`,
    {
      documentationUrl,
      cause: error,
    },
  );
}

/** Upstream's own answer; only API addresses become those of the caller's. */
function asItIs(call: RepositoryCall, { status, headers, body }: RawAnswer): Answer {
  const contentType = [headers["content-type"]].flat()[0];
  const kept: Record<string, string> = {};
  for (const name of ["retry-after", "location", "x-accepted-github-permissions", "x-github-sso"]) {
    const [value] = [headers[name]].flat();
    if (value !== undefined) kept[name] = rebase(value, call);
  }
  return {
    status,
    body: rebase(body, call),
    headers: kept,
    ...(contentType === undefined ? {} : { contentType }),
    isUncached: true,
  };
}

function rebase(text: string, { api, ctx }: RepositoryCall): string {
  return text.replaceAll(`${ctx.config.upstreamUrl}/`, `${api}/`);
}

/** Merges what upstream answered to a write, and answers its number. */
export async function store(
  ctx: ApiContext,
  kind: Created,
  { repository }: { repository: NonNullable<Sighting["repository"]> },
  answer: RawAnswer,
): Promise<number> {
  const representation = JSON.parse(answer.body) as Fields;
  const at: Sighting = { api: ctx.config.upstreamUrl, repository, seenAt: answer.seenAt, read: true };
  const observed = [observe(kind, representation, at)];
  const number = representation.number as number;
  if (kind === "pull_request") {
    const issue = await readIssueSide(ctx, repository.fullName, number);
    if (issue) observed.push(observe("issue", issue.body, { ...at, seenAt: issue.seenAt }));
  }
  await ctx.db.transaction(async (tx) => {
    for (const one of observed) await mergeObserved(tx, one);
  });
  return number;
}

/** A pull request is listed among the issues too, under an id that only its issue side tells. */
async function readIssueSide(
  { upstream, log }: ApiContext,
  fullName: string,
  number: number,
): Promise<{ body: Json; seenAt: Date } | null> {
  try {
    const answer = await upstream.get(`/repos/${fullName}/issues/${number}`, { priority: "caller" });
    return answer.kind === "ok" ? { body: answer.body as Json, seenAt: answer.seenAt } : null;
  } catch (error) {
    // The webhook will bring it; the pull request itself need not wait for that.
    log.warn({ err: error, repository: fullName, number }, "The issue side of a new pull request could not be read");
    return null;
  }
}

async function findCreated(
  { db }: Pick<ApiContext, "db">,
  kind: Created,
  repositoryId: number,
  number: number,
): Promise<StoredDocument | null> {
  const found = kind === "issue" ? await findIssue(db, repositoryId, number) : await findPull(db, repositoryId, number);
  return found && found !== "deleted" ? { repositoryId, ...found } : null;
}
