import { PEOPLE } from "../../../db/revisions.ts";
import type { Kept } from "../../mirror/unchanged/kept.ts";
import type { Standing } from "../../mirror/unchanged/standings.ts";
import type { Answer, Call } from "../call.ts";
import { classOf } from "../callers/caller.ts";
import { learnPublicRights } from "../callers/permissions.ts";
import type { Match } from "../operation.ts";
import { ownBytes, type PublicRight, type RenderedPage, shownStanding } from "../page.ts";

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
  const key = keyOf(call, right);
  const isAskedAgain = pages.knows(key);
  const learnsLater = match.route.learnsStanding === true && match.repository?.fullName != null;
  const known = await pages.get(key, call.reading, { learnsLater });
  const soFar = call.reading.soFar();
  const home = known && shownStanding(known, soFar);
  if (known && home) return answerOf(known, home);
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
function keyOf(call: Call, right: PublicRight | null): string {
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

function answerOf(page: RenderedPage, { confirmedAt, missing }: Standing): Answer {
  const { link, lastModified } = page;
  return { status: 200, body: null, page, link, lastModified, confirmedAt, missing, isKept: true };
}
