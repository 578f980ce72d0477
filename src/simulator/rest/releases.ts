import { createRelease, deleteRelease, editRelease, latestRelease, type ReleaseEdit } from "../changes/releases.ts";
import { assetView, releaseView } from "../views/release.ts";
import { allows } from "../world/access.ts";
import type { Release } from "../world/records-code.ts";
import { mayPush } from "../world/tokens.ts";
import { flag, oneOf, required, text, textOrNull } from "./body.ts";
import { type Answer, created, NO_CONTENT, needPush, notFound, ok, type RepositoryCall } from "./call.ts";
import { paged } from "./pagination.ts";

/** Newest first, roughly: GitHub promises no order. Drafts only for those who may push. */
export function listReleases(call: RepositoryCall): Answer {
  const rows = visible(call).sort((a, b) => b.createdAt - a.createdAt || b.id - a.id);
  return paged(call, { rows, size: rows.length }, (release) => releaseView(call.view, release));
}

function visible(call: RepositoryCall): Release[] {
  const { repository, world } = call;
  const all = [...world.code.of(repository).releases.values()].flatMap((row) => world.lag.seen(row) ?? []);
  const isWriter = allows(world, call.token, repository, [{ permission: "contents", level: "write" }]);
  return isWriter && mayPush(call.role) ? all : all.filter((one) => !one.draft);
}

function find(call: RepositoryCall): Release {
  const release = visible(call).find((one) => one.id === Number(call.params.id));
  if (!release) throw notFound();
  return release;
}

function toWrite(call: RepositoryCall): Release {
  const release = call.world.code.of(call.repository).releases.get(Number(call.params.id));
  if (!release) throw notFound();
  return release;
}

function shown(call: RepositoryCall, release: Release | undefined): Answer {
  if (!release) throw notFound();
  return ok(releaseView(call.view, release));
}

export function getRelease(call: RepositoryCall): Answer {
  return shown(call, find(call));
}

export function getLatest(call: RepositoryCall): Answer {
  return shown(call, latestRelease(visible(call)));
}

/** Published ones alone have their tag. */
export function getByTag(call: RepositoryCall): Answer {
  return shown(
    call,
    visible(call).find((one) => !one.draft && one.tagName === call.params.tag),
  );
}

export function listAssets(call: RepositoryCall): Answer {
  const release = find(call);
  const rows = release.assets;
  return paged(call, { rows, size: rows.length }, (asset) => assetView(call.view, release, asset));
}

export function getAsset(call: RepositoryCall): Answer {
  for (const release of visible(call)) {
    const asset = release.assets.find(({ id }) => id === Number(call.params.id));
    if (asset) return ok(assetView(call.view, release, asset));
  }
  throw notFound();
}

export function postRelease(call: RepositoryCall): Answer {
  const by = needPush(call);
  const tagName = required(text(call.body, "tag_name"), "tag_name");
  const release = createRelease(call.world, by, { ...editOf(call), repository: call.repository, tagName });
  return created(releaseView(call.view, release));
}

export function patchRelease(call: RepositoryCall): Answer {
  const by = needPush(call);
  const release = toWrite(call);
  editRelease(call.world, by, release, editOf(call));
  return ok(releaseView(call.view, release));
}

export function removeRelease(call: RepositoryCall): Answer {
  deleteRelease(call.world, needPush(call), toWrite(call));
  return NO_CONTENT;
}

const LATEST = { true: true, false: false, legacy: null } as const;

function editOf({ body }: RepositoryCall): ReleaseEdit {
  const edit: { -readonly [Name in keyof ReleaseEdit]: ReleaseEdit[Name] } = {};
  const tagName = text(body, "tag_name");
  const targetCommitish = text(body, "target_commitish");
  const name = textOrNull(body, "name");
  const words = textOrNull(body, "body");
  const draft = flag(body, "draft");
  const prerelease = flag(body, "prerelease");
  const latest = oneOf(body, "make_latest", ["true", "false", "legacy"] as const);
  if (tagName !== undefined) edit.tagName = tagName;
  if (targetCommitish !== undefined) edit.targetCommitish = targetCommitish;
  if (name !== undefined) edit.name = name;
  if (words !== undefined) edit.body = words;
  if (draft !== undefined) edit.draft = draft;
  if (prerelease !== undefined) edit.prerelease = prerelease;
  if (latest !== undefined) edit.makeLatest = LATEST[latest];
  return edit;
}
