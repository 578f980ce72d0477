/** Releases: drafts, publications, and what becomes of them. */
import { commitOf, shaNamed } from "../world/commits.ts";
import type { Repository } from "../world/records.ts";
import type { Release, ReleaseAsset } from "../world/records-code.ts";
import { invalid } from "../world/refusal.ts";
import type { World } from "../world/world.ts";
import { createTags } from "./refs.ts";

export interface ReleaseEdit {
  readonly tagName?: string;
  readonly targetCommitish?: string;
  readonly name?: string | null;
  readonly body?: string | null;
  readonly draft?: boolean;
  readonly prerelease?: boolean;
  readonly makeLatest?: boolean | null;
}

export interface ReleaseInput extends ReleaseEdit {
  readonly repository: Repository;
  readonly tagName: string;
}

/** Tells `created`, and for one that is no draft what its publication tells. */
export function createRelease(world: World, by: number, input: ReleaseInput): Release {
  const { repository, tagName } = input;
  const rows = world.code.of(repository).releases;
  const draft = input.draft ?? false;
  if (!draft) refuseTaken(world, repository, tagName);
  const release: Release = {
    id: world.nextId("release"),
    repository,
    authorId: by,
    tagName,
    targetCommitish: input.targetCommitish ?? repository.defaultBranch,
    name: input.name ?? null,
    body: input.body ?? null,
    draft,
    prerelease: input.prerelease ?? false,
    makeLatest: input.makeLatest ?? null,
    createdAt: world.now(),
    updatedAt: world.now(),
    publishedAt: null,
    assets: [],
    deleted: false,
  };
  release.createdAt = committedAt(world, release);
  rows.set(release.id, release);
  world.code.releases.set(release.id, release);
  world.lag.created(release);
  tell(world, by, release, "created");
  if (!draft) publish(world, by, release);
  return release;
}

export function editRelease(world: World, by: number, release: Release, edit: ReleaseEdit): void {
  const { repository } = release;
  if (edit.tagName !== undefined && edit.tagName !== release.tagName && !(edit.draft ?? release.draft))
    refuseTaken(world, repository, edit.tagName);
  const was = { ...release };
  world.changing(release);
  release.tagName = edit.tagName ?? release.tagName;
  release.targetCommitish = edit.targetCommitish ?? release.targetCommitish;
  if (edit.name !== undefined) release.name = edit.name;
  if (edit.body !== undefined) release.body = edit.body;
  release.draft = edit.draft ?? release.draft;
  release.prerelease = edit.prerelease ?? release.prerelease;
  if (edit.makeLatest !== undefined) release.makeLatest = edit.makeLatest;
  release.createdAt = committedAt(world, release);
  release.updatedAt = world.now();
  if (was.draft && !release.draft) {
    publish(world, by, release);
    return;
  }
  if (!was.draft && release.draft) {
    release.publishedAt = null;
    tell(world, by, release, "unpublished");
    return;
  }
  // Unconfirmed: that nobody hears of a draft's edits.
  if (release.draft) return;
  const changes: Record<string, unknown> = {};
  if (was.name !== release.name) changes.name = { from: was.name ?? "" };
  if (was.body !== release.body) changes.body = { from: was.body ?? "" };
  if (was.tagName !== release.tagName) changes.tag_name = { from: was.tagName };
  if (was.makeLatest !== release.makeLatest && release.makeLatest !== null)
    changes.make_latest = { to: release.makeLatest };
  if (Object.keys(changes).length > 0) tell(world, by, release, "edited", changes);
  if (was.prerelease !== release.prerelease) tell(world, by, release, release.prerelease ? "prereleased" : "released");
}

export function deleteRelease(world: World, by: number, release: Release): void {
  world.changing(release);
  release.deleted = true;
  world.code.of(release.repository).releases.delete(release.id);
  world.code.releases.delete(release.id);
  tell(world, by, release, "deleted");
}

/** No event tells of it. */
export function addAsset(
  world: World,
  by: number,
  release: Release,
  input: Pick<ReleaseAsset, "name"> & Partial<ReleaseAsset>,
): ReleaseAsset {
  if (release.assets.some(({ name }) => name === input.name))
    throw invalid({ resource: "ReleaseAsset", code: "already_exists", field: "name" });
  const asset: ReleaseAsset = {
    id: world.nextId("asset"),
    label: null,
    contentType: "application/octet-stream",
    size: 1_024,
    downloads: 0,
    uploaderId: by,
    createdAt: world.now(),
    ...input,
  };
  world.changing(release);
  release.assets = [...release.assets, asset];
  return asset;
}

/** The count of downloads moves nothing else. */
export function download(world: World, release: Release, assetId: number): void {
  world.changing(release);
  release.assets = release.assets.map((one) => (one.id === assetId ? { ...one, downloads: one.downloads + 1 } : one));
}

/** The one that was made so, else the newest by its commit that is neither a draft nor a preview. */
export function latestRelease(releases: Iterable<Release>): Release | undefined {
  const able = [...releases].filter((one) => !one.draft && !one.prerelease && one.makeLatest !== false);
  const chosen = able.filter((one) => one.makeLatest === true);
  return (chosen.length > 0 ? chosen : able).toSorted((a, b) => a.createdAt - b.createdAt || a.id - b.id).at(-1);
}

function publish(world: World, by: number, release: Release): void {
  const { repository, tagName } = release;
  release.publishedAt = world.now();
  if (!world.code.of(repository).tags.has(tagName)) {
    const sha = shaNamed(world, repository, release.targetCommitish);
    if (sha === undefined) throw invalid({ resource: "Release", code: "invalid", field: "target_commitish" });
    createTags(world, by, repository, [{ name: tagName, sha }]);
  }
  tell(world, by, release, "published");
  tell(world, by, release, release.prerelease ? "prereleased" : "released");
}

function refuseTaken(world: World, repository: Repository, tagName: string): void {
  for (const one of world.code.of(repository).releases.values()) {
    if (!one.draft && one.tagName === tagName)
      throw invalid({ resource: "Release", code: "already_exists", field: "tag_name" });
  }
}

function committedAt(world: World, { repository, tagName, targetCommitish }: Release): number {
  const tag = world.code.of(repository).tags.get(tagName);
  const sha = tag?.sha ?? shaNamed(world, repository, targetCommitish);
  return (sha === undefined ? undefined : commitOf(world, repository, sha)?.committedAt) ?? world.now();
}

function tell(
  world: World,
  by: number,
  release: Release,
  action: string,
  changes?: Readonly<Record<string, unknown>>,
): void {
  const { repository } = release;
  world.emit({ event: "release", action, repository, senderId: by, release, ...(changes ? { changes } : {}) });
}
