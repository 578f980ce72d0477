import { isDeepStrictEqual } from "node:util";
import { PEOPLE } from "../../../db/revisions.ts";
import { isRead } from "../../http/reply.ts";
import {
  findOldestConfirmation,
  findRenamedRepository,
  type RepositoryName,
  type Right,
  type ShownRepository,
  sees,
} from "../../mirror/read/repositories.ts";
import type { Kept, Standing } from "../../mirror/unchanged/unchanged.ts";
import { shownStanding } from "../again.ts";
import { type Answer, type Call, moved, type PublicRight, type RenderedPage, type RepositoryCall } from "../call.ts";
import { classOf, learnPublicRights, readsCode, requireRight } from "../callers/permissions.ts";
import { notFound, notHeld } from "../dialect/fault.ts";
import { refreshShown } from "../forward/fresh.ts";
import { ownBytes } from "../kept-bodies.ts";
import type { Match, Operation } from "../operation.ts";

/** The paths whose answers say nothing of upstream. */
const OWN: ReadonlySet<string> = new Set(["/", "/meta", "/versions", "/zen", "/rate_limit"]);

/** Runs the operation that was asked for, below a repository once it is known that the caller may see it. */
export async function runOperation(call: Call, { route, repository: named }: Match): Promise<Answer> {
  const { config, db } = call.ctx;
  if (route.run.of === "service") {
    // A replica that was cut off replays minutes in a moment. So the confirmation is read before the rows, and is never
    // newer than they are.
    const before = config.edgeOf !== null && !OWN.has(call.path) ? await findOldestConfirmation(db, call.sight) : null;
    const answer = await route.run.with(call);
    if (OWN.has(call.path) || answer.confirmedAt !== undefined || answer.status > 299) return answer;
    const notFresh = call.isFresh ? { notFresh: "this answer cannot be refreshed by itself" } : {};
    return { ...answer, ...notFresh, ...(before ?? (await findOldestConfirmation(db, call.sight))) };
  }
  if (!named) throw new Error(`A route below a repository was matched without one: ${call.path}`);
  const { with: answerWith, takes } = route.run;
  const ahead = await runAhead(call, named, route);
  if (ahead) return ahead;
  const found = await findNamedRepository(call, named);
  if (found === null) throw route.part ? notHeld() : notFound();
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
 * Reads the repository that last had this name, and asks meanwhile whether it still has it. Null: no repository is
 * remembered, or it has lost the name or has changed. Then the read is discarded.
 */
async function runAhead(
  call: Call,
  { fullName, rest }: { fullName: string | null; rest: string },
  { run: operation, learnsStanding, part }: Operation,
): Promise<Answer | null> {
  if (fullName === null || !isRead(call.method) || call.isFresh || operation.of !== "repository") return null;
  const { repositories } = call.ctx.mirror;
  const recalled = repositories.recall(fullName, call.sight);
  // A caller who lacks the right is refused only once the repository is known for certain.
  if (!recalled || !sees(call.sight, recalled.repository, operation.takes)) return null;
  if (!isServed(call, recalled.repository, { part, takes: operation.takes })) return null;
  const { repository } = recalled;
  const met = new Set([repository.id]);
  const path = `/repositories/${repository.id}${rest}`;
  const below: RepositoryCall = { ...call, repository, takes: operation.takes, met, path };
  const ids = [PEOPLE, ...recalled.ids];
  // At an edge the rows are read again after their confirmation, as for `before` above.
  const isAtEdge = call.ctx.config.edgeOf !== null;
  const confirm = async () =>
    repositories.confirm(recalled, await call.reading.now(ids)) ??
    (isAtEdge ? null : await findUnchanged(call, fullName, repository));
  const isKnown = call.reading.knows(ids);
  const answering = operation.with(below);
  const [answer, confirmed] = await Promise.allSettled([
    answering,
    learnsStanding && !isKnown ? answering.then(confirm, confirm) : confirm(),
  ]);
  if (confirmed.status === "rejected") throw confirmed.reason;
  if (!confirmed.value) return null;
  if (answer.status === "rejected") throw answer.reason;
  for (const id of met) call.met.add(id);
  const stood = learnsStanding && !isKnown ? { stood: call.reading.soFar() } : {};
  const { confirmedAt, missing } = confirmed.value;
  return { confirmedAt, missing, ...answer.value, ...stood };
}

/** Requires that the mirror serves this part. @throws NotHeldFault if upstream has to be asked */
function requirePart(call: RepositoryCall, { part }: Operation): void {
  if (!isServed(call, call.repository, { part, takes: call.takes })) throw notHeld();
}

/** Whether we mirror the part, and know without upstream whether the caller may see it. */
function isServed(
  { caller, sight }: Call,
  repository: ShownRepository,
  { part, takes }: { part: Operation["part"] | undefined; takes: Right },
): boolean {
  if (!part) return true;
  if (!repository.mirrors.includes(part)) return false;
  if (takes !== "checks" && takes !== "statuses" && takes !== "contents") return true;
  // Callers with our own tokens are refused here, in our words.
  return readsCode(caller, sight, repository, takes) || (caller.kind === "user" && caller.by.of === "own");
}

/** The repository that has this name now, if it is the known one and operations would see nothing different. */
async function findUnchanged(
  { ctx: { mirror }, sight }: Call,
  fullName: string,
  known: ShownRepository,
): Promise<ShownRepository | null> {
  const found = await mirror.repositories.named(fullName, sight);
  const unconfirmed = { confirmedAt: null, missing: null };
  return isDeepStrictEqual({ ...found, ...unconfirmed }, { ...known, ...unconfirmed }) ? found : null;
}

async function findNamedRepository(
  { ctx: { db, mirror }, sight }: Call,
  named: RepositoryName,
): Promise<{ repository: ShownRepository; isMoved: boolean } | null> {
  const repository = await mirror.repositories.at(named, sight);
  if (repository || named.fullName === null) return repository && { repository, isMoved: false };
  const renamed = await findRenamedRepository(db, named.fullName, sight);
  return renamed && { repository: renamed, isMoved: true };
}

/**
 * The kept page, or else the answer of `render`, which is kept if possible. `render` notes in `call.met` the
 * repositories that it shows.
 */
export async function keptOrRendered(
  pages: Kept<RenderedPage>,
  call: Call,
  match: Match,
  render: () => Promise<Answer>,
): Promise<Answer> {
  if (!mayBeKept(call, match)) return render();
  const right = match.route.showsRights ? await publicRightOf(call, match) : null;
  if (right?.level === null) return render();
  const key = pageKey(call, right);
  const isAskedAgain = pages.knows(key);
  const learnsLater = match.route.learnsStanding === true && match.repository?.fullName != null;
  const known = await pages.get(key, call.reading, { learnsLater });
  const soFar = call.reading.soFar();
  const home = known && shownStanding(known, soFar);
  if (known && home) return pageAnswer(known, home);
  const { stood, ...answer } = await render();
  const before = (isAskedAgain ? stood : undefined) ?? soFar;
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
    encoded: new Map(),
    tags: new Map(),
  });
  const page = pages.keep(key, make, { shown: [PEOPLE, ...call.met], before });
  return page ? { ...answer, body: null, page } : answer;
}

/** The page's name: the question, the form of the answer, and the class of callers that see the same. */
function pageKey(call: Call, right: PublicRight | null): string {
  const rights = right === null ? "" : `\n${right.repositoryId} ${right.level}`;
  return `${call.path}?${call.query}\n${call.api}\n${call.version}\n${call.media.form}\n${classOf(call.caller)}${rights}`;
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
  const found = await call.ctx.mirror.repositories.at(named, call.sight, call.reading);
  if (!found || found.isPrivate) return null;
  await learnPublicRights(call, [found]);
  return { repositoryId: found.id, level: call.publicRights.get(found.id) ?? null };
}

function mayBeKept(call: Call, { route }: Match): boolean {
  return (
    route.run.of === "repository" &&
    route.method === "GET" &&
    !route.isOurs &&
    !call.isFresh &&
    call.media.patch === null &&
    // The sort `long-running` depends on the time of day.
    call.query.get("sort") !== "long-running"
  );
}

function isPage({ status, contentType, headers, isUncached, notFresh }: Answer): boolean {
  return status === 200 && contentType === undefined && headers === undefined && !isUncached && !notFresh;
}

function pageAnswer(page: RenderedPage, { confirmedAt, missing }: Standing): Answer {
  const { link, lastModified } = page;
  return { status: 200, body: null, page, link, lastModified, confirmedAt, missing, isKept: true };
}
