import { createHash, hash } from "node:crypto";
import { PEOPLE } from "../../../db/revisions.ts";
import { encodingOf, isRead, isShort, type RequestHeaders } from "../../http/reply.ts";
import { isCodeRight } from "../../kinds/contract/rights.ts";
import {
  findOldestConfirmation,
  findRenamedRepositories,
  type RepositoryName,
  type ShownRepository,
} from "../../mirror/read/repositories.ts";
import { type WantedList, want } from "../../mirror/store/wanted-lists.ts";
import type { Kept, RepositoryVersion } from "../../mirror/unchanged/unchanged.ts";
import { ElsewhereError } from "../../operations/elsewhere.ts";
import type { Pace } from "../../work/pace.ts";
import { shownVersion } from "../call/again.ts";
import {
  type Answer,
  type ApiContext,
  type Call,
  moved,
  type PublicRight,
  type RenderedPage,
  type RepositoryCall,
} from "../call/call.ts";
import { ownBytes } from "../call/kept-bodies.ts";
import type { Match, Operation } from "../call/operation.ts";
import { OutdatedFault } from "../call/outdated.ts";
import {
  type Caller,
  classOf,
  learnPublicRights,
  mayForwardAs,
  readsCode,
  requireRight,
} from "../callers/permissions.ts";
import { inForm } from "../dialect/body-form.ts";
import { asBytes, laidOut } from "../dialect/elements.ts";
import {
  ApiFault,
  NotHeldFault,
  notHeld,
  UnmirroredFault,
  UnreadFault,
  UnshownFault,
  unshown,
} from "../dialect/fault.ts";
import type { MarkdownRenderer } from "../dialect/markdown-renderer.ts";
import { notYet, prefers } from "../dialect/preferences.ts";
import { PART, VARY } from "../dialect/protocol.ts";
import { forwardAsCaller } from "../forward/as-caller.ts";
import { refreshShown } from "../forward/fresh.ts";
import { readByMirror } from "../forward/mirror-reads.ts";
import { notAsked, notServed } from "../forward/service-routes.ts";

/** The paths whose answers say nothing of upstream. */
const OWN: ReadonlySet<string> = new Set(["/", "/meta", "/versions", "/zen", "/rate_limit"]);

/** What answering takes beside the call. */
interface AnsweringParts {
  ctx: ApiContext;
  pages: Kept<RenderedPage>;
  markdown: MarkdownRenderer;
}

/**
 * The answer to a call: kept, made of the mirror, or upstream's own.
 * @param match null: we serve no such operation
 * @param asked the whole query; a call holds only the parameters that its operation knows
 */
export async function answerTo(
  { ctx, pages, markdown }: AnsweringParts,
  call: Call,
  { match, asked }: { match: Match | null; asked: URLSearchParams },
): Promise<Answer> {
  const { forwarding } = ctx.config;
  if (!match) return await forwarded(ctx, call, null);
  const isPart = (await match.route.isPart?.(call)) ?? false;
  if (isPart && forwarding && mayForwardAs(call.caller))
    return await forwarded(ctx, { ...call, query: asked }, match, notHeld());
  const render = async () => {
    const answer = await runOperation({ ...call, isPart }, match);
    const dated = { ...answer, lastModified: lastChange(answer, call) };
    return inAskedForm(call, isPart ? partOf(dated) : dated, { markdown, pace: ctx.mirror.pace });
  };
  return await keptOrRendered(pages, call, match, render).catch(async (error: unknown) => {
    if (error instanceof UnmirroredFault) leaveElsewhere(ctx, call, match);
    if (error instanceof NotHeldFault) return await forwarded(ctx, { ...call, query: asked }, match, error);
    const mayAsk = error instanceof UnmirroredFault && forwarding && isRead(call.method);
    const answer = mayAsk ? await forwardAsCaller(call) : null;
    if (!answer) throw error;
    return answer;
  });
}

/** When anything that the answer shows last changed. Null: the answer has no date. */
function lastChange({ lastModified }: Answer, { embedded }: Call): Date | null {
  return lastModified ? new Date(Math.max(lastModified.getTime(), embedded.changedAt)) : null;
}

/** The answer with the header that says that upstream has more. */
function partOf(answer: Answer): Answer {
  return { ...answer, headers: { ...answer.headers, ...PART } };
}

/**
 * Upstream's answer to a request that we cannot answer.
 * @param held what is mirrored of it but missing here
 * @throws ApiFault if upstream is not asked: this is not served, or not yet
 */
async function forwarded(ctx: ApiContext, call: Call, match: Match | null, held?: NotHeldFault): Promise<Answer> {
  // Nobody could be asked for these callers, so the mirror's own answer is the whole answer.
  if (held instanceof UnshownFault && !mayForwardAs(call.caller)) throw held;
  leaveElsewhere(ctx, call, match);
  if (held instanceof UnreadFault && held.wanted) await askFor(ctx, call, held.wanted);
  const { forwarding } = ctx.config;
  const older = held instanceof OutdatedFault ? held.older : null;
  const answered = forwarding ? await forwardAsCaller(call).catch((error) => unlessOlder(error, older)) : null;
  if (answered) return answered;
  if (held instanceof UnreadFault && prefers(call.headers, "settled")) throw notYet();
  const answer = forwarding === "all" ? await readByMirror(call) : null;
  if (!answer && older) return await older();
  if (!answer) throw held instanceof UnshownFault ? notAsked(call) : notServed(call);
  return answer;
}

/** Null if the caller gets what the mirror has, since upstream does not answer. */
function unlessOlder(error: unknown, older: OutdatedFault["older"] | null): null {
  if (older && error instanceof ApiFault && error.status >= 500) return null;
  throw error;
}

/** Has the mirror read a list that a caller has asked for. It comes out of the caller's share. */
async function askFor({ db, clock, upstream }: ApiContext, { caller }: Call, list: WantedList): Promise<void> {
  if (caller.kind === "anonymous") return;
  await want(db, list, { now: clock.now(), mayAsk: () => upstream.takeDoubt(caller) });
}

/**
 * Leaves what a replica does not hold to a process that writes: it answers and counts the request.
 * @throws ElsewhereError in a process that reads from a replica alone
 */
function leaveElsewhere({ db }: ApiContext, { quota, caller }: Call, match: Match | null): void {
  if (!db.isReadOnly) return;
  if (!match?.route.isFree) quota.refund(caller, match?.route.bucket ?? "core", 1);
  throw new ElsewhereError("The replica does not hold what was asked for");
}

/** Our JSON with the bodies in the form that was asked for. */
async function inAskedForm(
  { media: { form } }: Call,
  answer: Answer,
  { markdown, pace }: { markdown: MarkdownRenderer; pace: Pace },
): Promise<Answer> {
  if (form === null || !isOurJson(answer)) return answer;
  const { body, isFinal } = await inForm(asBytes(answer.body), form, markdown, pace);
  return { ...answer, body, ...(isFinal ? {} : { isUncached: true }) };
}

/** Runs the operation that was asked for, below a repository once it is known that the caller may see it. */
async function runOperation(call: Call, { route, repository: named }: Match): Promise<Answer> {
  const { db } = call.ctx;
  if (route.run.of === "service") {
    // A replica that was cut off replays minutes in a moment. So the confirmation is read before the rows, and is never
    // newer than they are.
    const before = db.isReadOnly && !OWN.has(call.path) ? await findOldestConfirmation(db, call.access) : null;
    const answer = await route.run.with(call);
    if (OWN.has(call.path) || answer.confirmedAt !== undefined || answer.status > 299) return answer;
    const notFresh = call.isFresh ? { notFresh: "this answer cannot be refreshed by itself" } : {};
    return { ...answer, ...notFresh, ...(before ?? (await findOldestConfirmation(db, call.access))) };
  }
  if (!named) throw new Error(`A route below a repository was matched without one: ${call.path}`);
  const { with: answerWith, takes } = route.run;
  const found = await findNamedRepository(call, named);
  // What a caller gets may not depend on whether we serve the route: upstream may show the repository.
  if (found === null) throw route.part ? notHeld() : unshown();
  call.met.add(found.repository.id);
  const path = `/repositories/${found.repository.id}${named.rest}`;
  if (found.isMoved) return moved(call, path);
  const below: RepositoryCall = { ...call, repository: found.repository, takes, path };
  requirePart(below, route);
  requireRight(below, takes);
  const refreshed = call.isFresh ? await refreshShown(below, named.rest) : null;
  if (refreshed && "shown" in refreshed) return refreshed.shown;
  const answer = await answerWith(below);
  const { confirmedAt, missing } = found.repository;
  return { confirmedAt, missing, ...refreshed, ...answer };
}

/**
 * Requires that we mirror the part, and know without upstream whether the caller may see it.
 * @throws NotHeldFault if upstream has to be asked
 */
function requirePart({ caller, access, repository, takes }: RepositoryCall, { part }: Operation): void {
  if (!part) return;
  if (!repository.mirrors.includes(part)) throw notHeld();
  if (!isCodeRight(takes)) return;
  // Callers with our own tokens are refused later, in our words.
  const isOwn = caller.kind === "user" && caller.by.of === "own";
  if (!isOwn && !readsCode(caller, access, repository, takes)) throw notHeld();
}

async function findNamedRepository(
  { ctx: { db, mirror }, access, reading }: Call,
  named: RepositoryName,
): Promise<{ repository: ShownRepository; isMoved: boolean } | null> {
  const repository = await mirror.repositories.at(named, access, reading);
  if (repository || named.fullName === null) return repository && { repository, isMoved: false };
  const [renamed] = (await findRenamedRepositories(db, [named.fullName], access)).values();
  return renamed ? { repository: renamed, isMoved: true } : null;
}

/**
 * The kept page, or else the answer of `render`, which is kept if possible. `render` notes in `call.met` the
 * repositories that it shows.
 */
async function keptOrRendered(
  pages: Kept<RenderedPage>,
  call: Call,
  match: Match,
  render: () => Promise<Answer>,
): Promise<Answer> {
  if (!mayBeKept(call, match)) return render();
  const right = match.route.showsRights ? await publicRightOf(call, match) : null;
  if (right?.level === null) return render();
  const key = pageKey(call, right);
  const known = await pages.get(key, call.reading);
  const before = call.reading.soFar();
  const home = known && shownVersion(known, before);
  if (known && home) return pageAnswer(known, home);
  const answer = await render();
  const { body, link = null, lastModified = null } = answer;
  const [repositoryId] = call.met;
  if (!isPage(answer) || body === null || repositoryId === undefined) return answer;
  const make = (): RenderedPage => ({
    id: Symbol(),
    key,
    right,
    bytes: ownBytes(body),
    link,
    lastModified,
    repositoryId,
    confirmedAt: answer.isOwnTime ? (answer.confirmedAt ?? null) : null,
    encoded: new Map(),
    tags: new Map(),
  });
  const page = pages.keep(key, make, { shown: [PEOPLE, ...call.met], before });
  return page ? { ...answer, body: null, page } : answer;
}

/** The page's name: the question, the form of the answer, and the class of callers that see the same. */
function pageKey(call: Call, right: PublicRight | null): string {
  const rights = right === null ? "" : `\n${right.repositoryId} ${right.level}`;
  return `${call.path}?${call.query}\n${call.api}\n${call.version}\n${call.media.form} ${call.hasNextIds}\n${classOf(call.caller)}${rights}`;
}

/**
 * The caller's right in the public repository that is asked about. Null: the answer does not depend on it, or the
 * caller's class already tells it. A null level: upstream has not told the right.
 */
async function publicRightOf(
  call: Call,
  { repository: named }: Match,
): Promise<PublicRight | { repositoryId: number; level: null } | null> {
  if (!named || call.caller.kind === "anonymous" || call.caller.by.of === "own") return null;
  const found = await call.ctx.mirror.repositories.at(named, call.access, call.reading);
  if (!found || found.isPrivate) return null;
  await learnPublicRights(call, [found]);
  return { repositoryId: found.id, level: call.publicRights.get(found.id) ?? null };
}

function mayBeKept(call: Call, { route }: Match): boolean {
  return (
    route.run.of === "repository" &&
    route.method === "GET" &&
    !route.isOurs &&
    !route.isJudged &&
    !call.isFresh &&
    call.media.patch === null
  );
}

function isPage({ status, contentType, headers, isUncached, notFresh }: Answer): boolean {
  return status === 200 && contentType === undefined && headers === undefined && !isUncached && !notFresh;
}

function pageAnswer(page: RenderedPage, { confirmedAt, missing }: RepositoryVersion): Answer {
  const { link, lastModified } = page;
  return { status: 200, body: null, page, link, lastModified, confirmedAt, missing, isKept: true };
}

/** How much is hashed at once: it takes a millisecond. */
const HASHED_AT_ONCE = 512 * 1024;

/** How many tags of one page are kept, each for another caller. */
const MAX_TAGS = 100;

/**
 * The headers by which an answer may be kept and asked for again.
 * @param agent the agent that the body is laid out for; undefined: it travels as it is
 */
export async function cacheHeaders(
  answer: Answer,
  caller: Caller,
  { request, agent, pace, now }: { request: RequestHeaders; agent: string | undefined; pace: Pace; now: Date },
): Promise<Record<string, string>> {
  const { lastModified, status, isUncached } = answer;
  if (status > 299 || status === 204) return {};
  const isAnonymous = caller.kind === "anonymous";
  const vary = isAnonymous ? ["Accept"] : ["Accept", "Authorization", "Cookie", "X-GitHub-OTP"];
  const varied = { Vary: `${vary.join(", ")}, ${VARY}` };
  if (isUncached) return { "Cache-Control": "no-cache", ...varied };
  const body = answer.page?.bytes ?? answer.body;
  if (body === null) return {};
  const tag = `"${await entityTag(answer, body, { vary, request, pace })}"`;
  // Indented, a short body may be long enough to travel compressed.
  const travelling = isShort(body) && answer.contentType === undefined ? await laidOut(body, agent, pace) : body;
  return {
    // A body that travels compressed has a weak tag, made of the plain bytes. GitHub was recorded to do so, but for a
    // 201.
    ETag: status !== 201 && encodingOf(travelling, request["accept-encoding"]) !== null ? `W/${tag}` : tag,
    "Cache-Control": `${isAnonymous ? "public" : "private"}, max-age=60, s-maxage=60`,
    ...varied,
    ...(lastModified && isOver(lastModified, now) ? { "Last-Modified": lastModified.toUTCString() } : {}),
  };
}

/** Whether the second has passed. Within it something may still change, and the date would not tell. */
function isOver(second: Date, now: Date): boolean {
  return now.getTime() - second.getTime() >= 1_000;
}

/** SHA-256 of the request headers that the answer varies by and of the body, as GitHub was found to make it. */
async function entityTag(
  { page }: Answer,
  body: string | Buffer,
  { vary, request, pace }: { vary: string[]; request: RequestHeaders; pace: Pace },
): Promise<string> {
  let prefix = "";
  for (const name of ["Accept", "Authorization", "Cookie"]) {
    const value = vary.includes(name) ? request[name.toLowerCase()] : undefined;
    if (value !== undefined) prefix += `${value}:`;
  }
  // One call takes half the time of a hash that is built in pieces.
  if (!page && typeof body === "string" && body.length <= HASHED_AT_ONCE) return hash("sha256", prefix + body);
  // Hashing a long body takes a while, and the same callers come again, so the page keeps their tags.
  const key = page && hash("sha256", prefix, "base64");
  const known = key && page.tags.get(key);
  if (known) return known;
  const bytes = asBytes(body);
  const varied = createHash("sha256").update(prefix);
  for (let at = 0; at < bytes.length; at += HASHED_AT_ONCE) {
    if (at > 0 && pace.isOver()) await pace.turn();
    varied.update(bytes.subarray(at, at + HASHED_AT_ONCE));
  }
  const tag = varied.digest("hex");
  if (key) {
    if (page.tags.size >= MAX_TAGS) page.tags.clear();
    page.tags.set(key, tag);
  }
  return tag;
}

/** Whether the answer is JSON of ours. Text, and upstream's own answer, stay as they are. */
export function isOurJson(answer: Answer): answer is Answer & { body: string | Buffer } {
  return answer.body !== null && answer.contentType === undefined;
}
