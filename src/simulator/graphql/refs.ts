/** Branches, tags, and releases. */
import { latestRelease } from "../changes/releases.ts";
import { repositoryPage, time, timeOrNull } from "../views/view.ts";
import { commitOf, shaNamed } from "../world/commits.ts";
import type { PullEnd, Repository } from "../world/records.ts";
import type { CheckSuite, Release, ReleaseAsset, Tag } from "../world/records-code.ts";
import { mayPush } from "../world/tokens.ts";
import { actor, type Call, mayRead, pathOf, requireRead } from "./call.ts";
import { commit, gitActor } from "./commits.ts";
import { arraySource, connection } from "./connection.ts";
import { pullsSource } from "./issue-lists.ts";
import type { Fields } from "./resolvers.ts";

type RefPrefix = "refs/heads/" | "refs/tags/";

interface Ref {
  readonly repository: Repository;
  readonly prefix: RefPrefix;
  readonly name: string;
  readonly sha: string;
  readonly tag: Tag | null;
}

function branchRef(repository: Repository, name: string): Ref | null {
  const sha = repository.branches.get(name);
  return sha === undefined ? null : { repository, prefix: "refs/heads/", name, sha, tag: null };
}

function tagRef(call: Call, repository: Repository, name: string): Ref | null {
  const tag = call.world.code.of(repository).tags.get(name);
  return tag ? { repository, prefix: "refs/tags/", name, sha: tag.sha, tag } : null;
}

/** The full name first, then the short one of a branch, then of a tag. */
export function refNamed(call: Call, repository: Repository, text: string): Ref | null {
  const [, kind, name = ""] = /^refs\/(heads|tags)\/(.+)$/.exec(text) ?? [];
  if (kind === "heads") return branchRef(repository, name);
  if (kind === "tags") return tagRef(call, repository, name);
  return branchRef(repository, text) ?? tagRef(call, repository, text);
}

export const refFields: Fields<Ref> = {
  id: (row) => `REF_${Buffer.from(`${row.repository.id}:${row.prefix}${row.name}`).toString("base64url")}`,
  target: (row, _, call) => {
    requireRead(call, row.repository, "contents");
    const { tag, sha, repository } = row;
    return tag?.object ? { oid: tag.object.sha, repository, tag, object: tag.object } : commit(sha, repository);
  },
  associatedPullRequests: (row, args, call, info) => {
    requireRead(call, row.repository, "pull_requests");
    const isFrom = (head: PullEnd | undefined) =>
      row.prefix === "refs/heads/" && head?.ref === row.name && head.repositoryId === row.repository.id;
    return connection(
      call,
      info,
      args,
      pullsSource(row.repository, args, ({ pull }) => isFrom(pull?.head)),
    );
  },
};

interface TagObject {
  readonly oid: string;
  readonly repository: Repository;
  readonly tag: Tag;
  readonly object: NonNullable<Tag["object"]>;
}

const tagPage = (call: Call, row: TagObject) => `${repositoryPage(call.view, row.repository)}/commit/${row.oid}`;

export const tagFields: Fields<TagObject> = {
  id: (row) => `TA_${Buffer.from(`${row.repository.id}:${row.oid}`).toString("base64url")}`,
  abbreviatedOid: (row) => row.oid.slice(0, 7),
  commitUrl: (row, _, call) => tagPage(call, row),
  commitResourcePath: (row, _, call) => pathOf(call, tagPage(call, row)),
  name: (row) => row.tag.name,
  message: (row) => row.object.message,
  tagger: (row, _, call) => gitActor(call, row.object.taggerId, row.object.at),
  target: (row) => commit(row.tag.sha, row.repository),
};

export const assetFields: Fields<ReleaseAsset & { readonly release: Release }> = {
  id: (row, _, call) => call.world.nodeId("ReleaseAsset", row, row.release.repository.id, call.view.nextIds),
  createdAt: (row) => time(row.createdAt),
  updatedAt: (row) => time(row.createdAt),
  downloadCount: (row) => row.downloads,
  uploadedBy: (row, _, call) => call.world.user(row.uploaderId),
  url: (row, _, call) =>
    `${call.view.apiUrl}/repos/${call.world.fullName(row.release.repository)}/releases/assets/${row.id}`,
  downloadUrl: (row, _, call) =>
    `${repositoryPage(call.view, row.release.repository)}/releases/download/${encodeURIComponent(row.release.tagName)}/${encodeURIComponent(row.name)}`,
};

const releasePage = (call: Call, { id, draft, repository, tagName }: Release) =>
  `${repositoryPage(call.view, repository)}/releases/tag/${encodeURIComponent(draft ? `untagged-${id}` : tagName)}`;

const html = (text: string | null) =>
  text === null ? null : `<p>${text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</p>`;

export const releaseFields: Fields<Release> = {
  id: (row, _, call) => call.world.nodeId("Release", row, row.repository.id, call.view.nextIds),
  databaseId: (row) => row.id,
  author: (row, _, call) => {
    const author = actor(call, row.authorId);
    return author?.type === "User" ? author : null;
  },
  description: (row) => row.body,
  descriptionHTML: (row) => html(row.body),
  shortDescriptionHTML: (row, { limit }) => html(row.body?.slice(0, limit) ?? null),
  createdAt: (row) => time(row.createdAt),
  updatedAt: (row) => time(row.updatedAt),
  publishedAt: (row) => timeOrNull(row.publishedAt),
  isDraft: (row) => row.draft,
  isPrerelease: (row) => row.prerelease,
  isLatest: (row, _, call) => latestRelease(releasesOf(call, row.repository))?.id === row.id,
  url: (row, _, call) => releasePage(call, row),
  resourcePath: (row, _, call) => pathOf(call, releasePage(call, row)),
  tag: (row, _, call) => tagRef(call, row.repository, row.tagName),
  tagCommit: (row, _, call) => commit(tagRef(call, row.repository, row.tagName)?.sha ?? null, row.repository),
  releaseAssets: (row, args, call, info) => {
    const assets = row.assets.filter(({ name }) => args.name == null || name === args.name);
    const rows = assets.map((asset) => ({ ...asset, release: row }));
    return connection(call, info, args, arraySource(rows, { keyOf: () => null }));
  },
};

/** Drafts are for those who may push: by their role, and by what the token was given. */
export function showsDrafts({ caller }: Call, repository: Repository): boolean {
  return mayPush(caller.roleOf(repository)) && caller.may(repository, [{ permission: "contents", level: "write" }]);
}

/** Those that the caller is shown. */
function releasesOf(call: Call, repository: Repository): Release[] {
  const all = [...call.world.code.of(repository).releases.values()].flatMap((row) => call.world.lag.seen(row) ?? []);
  return showsDrafts(call, repository) ? all : all.filter((row) => !row.draft);
}

/** What a repository has of these. */
export const repositoryCodeFields: Fields<Repository> = {
  // Its name is metadata; where it points to is not.
  defaultBranchRef: (row) => branchRef(row, row.defaultBranch),
  ref: (row, { qualifiedName }, call) => {
    requireRead(call, row, "contents");
    return refNamed(call, row, qualifiedName);
  },
  refs: (row, args, call, info) => {
    requireRead(call, row, "contents");
    const prefix: string = args.refPrefix;
    const query: string | undefined = args.query?.toLowerCase();
    const heads = [...row.branches.keys()].flatMap((name) => branchRef(row, name) ?? []);
    const tags = [...call.world.code.of(row).tags.keys()].flatMap((name) => tagRef(call, row, name) ?? []);
    // Names are without the prefix that was asked for.
    const found = (prefix.startsWith("refs/tags/") ? tags : prefix.startsWith("refs/heads/") ? heads : [])
      .filter((ref) => `${ref.prefix}${ref.name}`.startsWith(prefix))
      .filter((ref) => query === undefined || ref.name.toLowerCase().includes(query))
      .map((ref) => ({ ...ref, prefix, name: `${ref.prefix}${ref.name}`.slice(prefix.length) }));
    const byDate = args.orderBy?.field === "TAG_COMMIT_DATE";
    const places = new Map(found.map((ref, at) => [ref, at + 1]));
    const source = arraySource(found, {
      keyOf: (ref) => (byDate ? (commitOf(call.world, row, ref.sha)?.committedAt ?? 0) : ref.name),
      idOf: (ref) => places.get(ref) ?? 0,
      descending: (args.orderBy?.direction ?? args.direction) === "DESC",
      timed: byDate,
    });
    return connection(call, info, args, source);
  },
  object: (row, { expression, oid }, call) => {
    requireRead(call, row, "contents");
    const sha = shaNamed(call.world, row, oid ?? expression ?? "");
    return commit(sha ?? null, row);
  },
  release: (row, { tagName }, call) => {
    requireRead(call, row, "contents");
    return releasesOf(call, row).find((one) => !one.draft && one.tagName === tagName) ?? null;
  },
  latestRelease: (row, _, call) => {
    requireRead(call, row, "contents");
    return latestRelease(releasesOf(call, row)) ?? null;
  },
  releases: (row, args, call, info) => {
    requireRead(call, row, "contents");
    const byName = args.orderBy?.field === "NAME";
    const source = arraySource(releasesOf(call, row), {
      keyOf: byName ? (release) => release.name ?? release.tagName : (release) => release.createdAt,
      // Without an order the newest comes first, as in REST.
      descending: args.orderBy == null || args.orderBy.direction === "DESC",
      timed: !byName,
    });
    return connection(call, info, args, source);
  },
};

/** The branch of an end, as long as it is there. */
export function endRef(call: Call, end: PullEnd): Ref | null {
  const repository = call.world.repositories.get(end.repositoryId ?? 0);
  return repository && call.caller.roleOf(repository) && mayRead(call, repository, "contents")
    ? branchRef(repository, end.ref)
    : null;
}

export function suiteBranch({ headBranch, repository }: CheckSuite): Ref | null {
  return headBranch === null ? null : branchRef(repository, headBranch);
}
