import { PEOPLE } from "../../../db/revisions.ts";
import type { Kept } from "../../mirror/unchanged/kept.ts";
import type { Answer, Call } from "../call.ts";
import { classOf } from "../callers/caller.ts";
import type { Match } from "../operation.ts";
import { homeOf, ownBytes, type Page } from "../page.ts";

/**
 * The kept page, or else the answer of `render`, which is kept if possible. `render` notes in `call.met` the
 * repositories that it shows.
 */
export async function keptOrRendered(
  pages: Kept<Page>,
  call: Call,
  match: Match,
  render: () => Promise<Answer>,
): Promise<Answer> {
  if (!mayBeKept(call, match)) return render();
  const key = keyOf(call);
  const isAskedAgain = pages.knows(key);
  const learnsLater = match.route.learnsStanding === true && match.repository?.fullName != null;
  const known = await pages.get(key, call.reading, { learnsLater });
  const soFar = call.reading.soFar();
  const home = known && homeOf(known, soFar);
  if (known && home) return answerOf(known, home.confirmedAt);
  const { stood, ...answer } = await render();
  const before = (isAskedAgain ? stood : undefined) ?? soFar;
  const { body, link = null, lastModified = null } = answer;
  const [repositoryId] = call.met;
  if (!isPage(answer) || body === null || repositoryId === undefined) return answer;
  const make = (): Page => ({
    id: Symbol(),
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
export function keyOf(call: Pick<Call, "path" | "query" | "api" | "version" | "media" | "caller">): string {
  return `${call.path}?${call.query}\n${call.api}\n${call.version}\n${call.media.form}\n${classOf(call.caller)}`;
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

function answerOf(page: Page, confirmedAt: Date | null): Answer {
  const { link, lastModified } = page;
  return { status: 200, body: null, page, link, lastModified, confirmedAt, isKept: true };
}
