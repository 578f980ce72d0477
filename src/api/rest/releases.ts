import { findHeldReleases, findRelease, findReleases, type HeldReleases } from "../../mirror/read/releases.ts";
import type { StoredDocument } from "../../mirror/render/rendering.ts";
import { type Answer, ok, type RepositoryCall } from "../call/call.ts";
import { showOne } from "../call/view.ts";
import { seesDrafts } from "../callers/permissions.ts";
import { notFound, notHeld, unread } from "../dialect/fault.ts";
import { boundedPage, numberedPage, numberParam, pageDb } from "./page.ts";

export async function listReleases(call: RepositoryCall): Promise<Answer> {
  const withDrafts = showsDrafts(call, await requireHeld(call));
  const page = boundedPage(call, withDrafts ? "releases and drafts" : "releases");
  const { rows, total } = await findReleases(pageDb(call), call.repository.id, { withDrafts, ...page });
  return await numberedPage(call, rows, total);
}

export async function getRelease(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, params } = call;
  const held = await requireHeld(call);
  const id = numberParam(params.id);
  const found = id === null ? null : await findRelease(ctx.db, { repositoryId: repository.id, id });
  // A release that is missing here may be a draft that only upstream shows.
  if (!found || found.isDraft) return await releaseAnswer(call, showsDrafts(call, held) ? found : null);
  return await releaseAnswer(call, found);
}

export async function getLatestRelease(call: RepositoryCall): Promise<Answer> {
  const { latestId } = await requireHeld(call);
  if (latestId === undefined) throw unread();
  return await releaseAnswer(
    call,
    latestId === null ? null : await findRelease(call.ctx.db, { repositoryId: call.repository.id, id: latestId }),
  );
}

export async function getReleaseByTag(call: RepositoryCall): Promise<Answer> {
  const { ctx, repository, params } = call;
  await requireHeld(call);
  return await releaseAnswer(call, await findRelease(ctx.db, { repositoryId: repository.id, tag: params.tag ?? "" }));
}

/** Shows the release. @throws ApiFault 404 if there is none */
async function releaseAnswer(call: RepositoryCall, found: StoredDocument | null): Promise<Answer> {
  if (!found) throw notFound();
  return ok(await showOne(call, found));
}

/**
 * Whether the caller is shown drafts.
 * @throws NotHeldFault where upstream alone can say, or has drafts that the mirror is not shown
 */
function showsDrafts({ caller, repository }: RepositoryCall, held: HeldReleases): boolean {
  const shows = seesDrafts(caller, repository, held);
  if (shows === null) throw notHeld();
  return shows;
}

/** What the mirror holds of the releases. @throws UnreadFault if the list is incomplete */
async function requireHeld({ ctx, repository }: RepositoryCall): Promise<HeldReleases> {
  const [held] = await findHeldReleases(ctx.db, [repository.id]);
  if (!held) throw unread();
  return held;
}
