/** The fields of repositories that show releases, and the fields of releases. */
import { type Fields, isObject, objectOf } from "../../../json.ts";
import type { Order } from "../../../mirror/read/pages.ts";
import {
  findHeldReleases,
  findReleasesBy,
  type HeldReleases,
  type ReleaseKey,
  releaseSource,
} from "../../../mirror/read/releases.ts";
import { seesDrafts } from "../../callers/permissions.ts";
import type { GraphqlCall } from "../call/call.ts";
import { actorOf, type Node } from "../call/node.ts";
import { heldConnection, type PageArguments, storedConnection } from "./connection.ts";
import {
  databaseId,
  lacking,
  nodeId,
  ofRepository,
  onceRead,
  type Resolver,
  readsCodeOf,
  resourcePath,
  rest,
  type TypeResolvers,
} from "./fields.ts";
import { refNamed, taggedCommit } from "./refs.ts";

/** What the mirror holds of a repository's releases. @throws GraphQLError as `lacking`, if the list is incomplete */
async function heldOf(call: GraphqlCall, repositoryId: number): Promise<HeldReleases> {
  if (!(await readsCodeOf(call, repositoryId, "contents"))) return lacking(call, "releases");
  const held = await call
    .loader<number, HeldReleases | null>("held releases", (ids, db) => findHeldReleases(db, ids))
    .load(repositoryId);
  return held ?? lacking(call, "releases");
}

function releaseNode(call: GraphqlCall, key: ReleaseKey): Promise<Node | null> {
  return call
    .loader<ReleaseKey, Node | null>("releases", async (keys, db) =>
      call.unfoldEach("Release", await findReleasesBy(db, keys)),
    )
    .load(key);
}

type ReleaseArguments = PageArguments & { orderBy?: Order | null };

/** A repository's releases, by their time. How upstream sorts them by name is not known. */
const releases: Resolver = async ({ repositoryId }, args: ReleaseArguments, call, info) => {
  const held = await heldOf(call, repositoryId);
  const { rest: repository } = await call.requireRepositoryById(repositoryId);
  const withDrafts = seesDrafts(call.caller, { id: repositoryId, isPrivate: repository.private === true }, held);
  const { orderBy } = args;
  if (withDrafts === null || (orderBy && orderBy.field !== "CREATED_AT")) return lacking(call, "releases");
  // The newest release comes first unless the caller names an order.
  const direction = orderBy?.direction === "ASC" ? "asc" : "desc";
  const parent = { r: repositoryId, n: 0 };
  // The arguments' object names a list, also for later requests. This list depends on the caller too, hence the copy.
  const own = { ...args };
  return storedConnection(call, info, own, {
    kind: "Release",
    source: releaseSource({ withDrafts, direction }),
    parent,
  });
};

export const repositoryReleases: TypeResolvers = {
  releases,
  release: async ({ repositoryId }, { tagName }: { tagName: string }, call) => {
    await heldOf(call, repositoryId);
    return releaseNode(call, { repositoryId, tag: tagName });
  },
  latestRelease: async ({ repositoryId }, _args, call) => {
    const { latestId } = await heldOf(call, repositoryId);
    if (latestId === undefined) return lacking(call, "releases");
    return latestId === null ? null : releaseNode(call, { repositoryId, id: latestId });
  },
};

/** The account under this key, if it is a person: the field shows no bot. */
const user =
  (key: string): Resolver =>
  ({ rest: { [key]: account } }) => {
    const actor = actorOf(account);
    return actor?.kind === "User" ? actor : null;
  };

export const releaseResolvers: Readonly<Record<string, TypeResolvers>> = {
  Release: {
    ...ofRepository,
    id: nodeId,
    databaseId,
    author: user("author"),
    createdAt: rest("created_at"),
    description: rest("body"),
    isDraft: rest("draft"),
    isLatest: async ({ repositoryId, rest: { id } }, _args, call) => {
      const { latestId } = await heldOf(call, repositoryId);
      return latestId === undefined ? lacking(call, "releases") : latestId === id;
    },
    isPrerelease: rest("prerelease"),
    name: rest("name"),
    publishedAt: rest("published_at"),
    releaseAssets: ({ repositoryId, rest: release }, args: PageArguments & { name?: string | null }, _call, info) => {
      const { name } = args;
      const assets = (Array.isArray(release.assets) ? release.assets : []).filter(
        (asset): asset is Fields => isObject(asset) && (name == null || asset.name === name),
      );
      const nodes = assets.map((asset): Node => ({ kind: "ReleaseAsset", repositoryId, rest: { ...asset, release } }));
      // Assets keep upstream's order.
      return heldConnection(info, args, nodes, { keyOf: (_, at) => String(at).padStart(6, "0") });
    },
    resourcePath,
    tag: ({ repositoryId, rest: { tag_name: name } }, _args, call) => refNamed(call, repositoryId, `refs/tags/${name}`),
    tagCommit: ({ repositoryId, rest: { tag_name: name } }, _args, call) =>
      taggedCommit(call, repositoryId, String(name)),
    tagName: rest("tag_name"),
    updatedAt: onceRead("updated_at"),
    url: rest("html_url"),
  },
  ReleaseAsset: {
    id: nodeId,
    contentType: rest("content_type"),
    createdAt: rest("created_at"),
    downloadCount: rest("download_count"),
    downloadUrl: rest("browser_download_url"),
    name: rest("name"),
    release: ({ repositoryId, rest: { release } }) => ({ kind: "Release", repositoryId, rest: objectOf(release) }),
    size: rest("size"),
    uploadedBy: ({ rest: { uploader } }, _args, call) => actorOf(uploader) ?? lacking(call, "releases"),
    updatedAt: rest("updated_at"),
  },
};
