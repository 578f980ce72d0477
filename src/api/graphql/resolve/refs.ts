/** The fields of repositories that show branches and tags, and the fields of branches and tags. */
import { objectOf, textOf } from "../../../json.ts";
import type { Order } from "../../../mirror/read/pages.ts";
import { areRefsHeld, type FoundRef, findRefs, IS_PLACE_UNSURE, refSource } from "../../../mirror/read/refs.ts";
import { type RefName, refNameOf } from "../../../mirror/store/refs.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Node } from "../call/node.ts";
import type { PageArguments } from "./connection.ts";
import { storedConnection } from "./connection.ts";
import {
  commitNode,
  lacking,
  notMirrored,
  ofRepository,
  type Resolver,
  readsCodeOf,
  type TypeResolvers,
} from "./fields.ts";

/** The ref as the mirror has it. Null: there is no such ref. @throws GraphQLError as `lacking` */
async function refOf(call: GraphqlCall, key: RefName & { repositoryId: number }): Promise<FoundRef | null> {
  if (!(await readsCodeOf(call, key.repositoryId, "contents"))) return lacking(call, "branches and tags");
  const found = await call
    .loader<typeof key, FoundRef | null | undefined>("refs", (keys) => findRefs(call.db, keys))
    .load(key);
  return found === undefined ? lacking(call, "branches and tags") : found;
}

const refNode = (repositoryId: number, ref: string): Node => ({ kind: "Ref", repositoryId, rest: { ref } });

/** The kind and name of a ref that a list shows. */
const shownRefName = ({ rest: { ref } }: Node): RefName =>
  refNameOf(String(ref)) ?? { kind: "heads", name: String(ref) };

type RefArguments = PageArguments & { refPrefix: string; query?: string | null; orderBy?: Order | null };

/**
 * The refs of one kind, by name. Only upstream knows the dates of their commits, and how it searches for a part of a
 * name.
 */
const refs: Resolver = async ({ repositoryId }, args: RefArguments, call, info) => {
  const [, kind] = /^refs\/(heads|tags)\/$/.exec(args.refPrefix) ?? [];
  const { orderBy, query } = args;
  if ((kind !== "heads" && kind !== "tags") || query || (orderBy && orderBy.field !== "ALPHABETICAL"))
    return lacking(call, "branches and tags");
  if (!(await readsCodeOf(call, repositoryId, "contents"))) return lacking(call, "branches and tags");
  if (!(await areRefsHeld(call.db, repositoryId, kind, { isUnsure: IS_PLACE_UNSURE })))
    return lacking(call, "branches and tags");
  const source = refSource(kind, orderBy?.direction === "DESC" ? "desc" : "asc");
  return storedConnection(call, info, args, { kind: "Ref", source, parent: { r: repositoryId, n: 0 } });
};

export const repositoryRefs: TypeResolvers = {
  // The name of the default branch is metadata. The commit that it points to is not.
  defaultBranchRef: ({ repositoryId, rest: { default_branch: name } }) =>
    typeof name === "string" && name !== "" ? refNode(repositoryId, `refs/heads/${name}`) : null,
  ref: async ({ repositoryId }, { qualifiedName }: { qualifiedName: string }, call) => {
    const named = refNameOf(qualifiedName);
    // A short name may name a branch or a tag.
    if (!named) return lacking(call, "branches and tags");
    return (await refOf(call, { repositoryId, ...named })) && refNode(repositoryId, qualifiedName);
  },
  refs,
};

async function refTarget(node: Node, call: GraphqlCall): Promise<Node | null> {
  const { repositoryId } = node;
  const found = await refOf(call, { repositoryId, ...shownRefName(node) });
  const [shown] = found ? await call.unfold("Ref", [found]) : [];
  const { type, sha } = objectOf(shown?.rest.object);
  if (!found || textOf(sha) === null) return lacking(call, "branches and tags");
  if (type === "commit") return commitNode(repositoryId, sha);
  const rest = { oid: sha ?? null, name: shownRefName(node).name, commit: found.commitSha };
  return type === "tag" ? { kind: "Tag", repositoryId, rest } : lacking(call, "branches and tags");
}

export const refResolvers: Readonly<Record<string, TypeResolvers>> = {
  Ref: {
    ...ofRepository,
    branchProtectionRule: notMirrored,
    name: (node) => shownRefName(node).name,
    prefix: (node) => `refs/${shownRefName(node).kind}/`,
    target: (node, _args, call) => refTarget(node, call),
  },
  Tag: {
    ...ofRepository,
    abbreviatedOid: ({ rest: { oid } }) => String(oid).slice(0, 7),
    commitUrl: async ({ repositoryId, rest: { oid } }, _args, call) =>
      `${(await call.requireRepositoryById(repositoryId)).rest.html_url}/commit/${oid}`,
    id: (_node, _args, call) => lacking(call, "branches and tags"),
    name: ({ rest: { name } }) => name,
    oid: ({ rest: { oid } }) => oid,
    target: ({ repositoryId, rest: { commit } }, _args, call) =>
      commitNode(repositoryId, commit) ?? lacking(call, "branches and tags"),
  },
};
