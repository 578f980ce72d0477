/** The fields of repositories that show branches and tags, and the fields of branches and tags. */
import { objectOf, textOf } from "../../../json.ts";
import type { Order } from "../../../mirror/read/pages.ts";
import { findPullsOfBranches, type PullsArguments } from "../../../mirror/read/pulls.ts";
import { type FoundRef, findHeldRefLists, refSource } from "../../../mirror/read/refs.ts";
import { type RefName, refNameOf } from "../../../mirror/store/refs.ts";
import { readsCode } from "../../callers/permissions.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Node } from "../call/node.ts";
import { commitPage, requireCommit } from "./commits.ts";
import { heldConnection, type PageArguments, storedConnection } from "./connection.ts";
import {
  commitNode,
  lacking,
  ofRepository,
  pathnameOf,
  pullState,
  type Resolver,
  readsCodeOf,
  type TypeResolvers,
} from "./fields.ts";
import { heldRef, protectionRule, type RefKey } from "./held-refs.ts";
import { embeddedRepository } from "./repository-details.ts";

/** The ref, or null if there is none. @throws GraphQLError as `lacking` */
async function refOf(call: GraphqlCall, key: RefKey): Promise<FoundRef | null> {
  if (!(await readsCodeOf(call, key.repositoryId, "contents"))) return lacking(call, "branches and tags");
  const found = await heldRef(call, key);
  return found === undefined ? lacking(call, "branches and tags") : found;
}

/**
 * The branch or tag that a name means. A name that is both, or that looks like the beginning of a full one, is
 * upstream's to resolve. @throws GraphQLError as `lacking`
 */
export async function refNamed(call: GraphqlCall, repositoryId: number, name: string): Promise<Node | null> {
  const named = refNameOf(name);
  if (named) return (await refOf(call, { repositoryId, ...named })) && refNode(repositoryId, name);
  if (/^(refs|heads|tags)(\/|$)/.test(name)) return lacking(call, "branches and tags");
  const branch = await refOf(call, { repositoryId, kind: "heads", name });
  const tag = await refOf(call, { repositoryId, kind: "tags", name });
  if (branch && tag) return lacking(call, "branches and tags");
  if (branch) return refNode(repositoryId, `refs/heads/${name}`);
  return tag && refNode(repositoryId, `refs/tags/${name}`);
}

/** The commit that a tag leads to; null: there is no such tag. @throws GraphQLError as `lacking` */
export async function taggedCommit(call: GraphqlCall, repositoryId: number, name: string): Promise<Node | null> {
  const found = await refOf(call, { repositoryId, kind: "tags", name });
  return found && (commitNode(repositoryId, found.commitSha) ?? lacking(call, "branches and tags"));
}

/**
 * The branch at an end of a pull request, as long as it is there. Null also where the mirror does not know: clients ask
 * for it whether they need it or not.
 */
const endRef =
  (end: "base" | "head"): Resolver =>
  async ({ rest }, _args, call) => {
    const { ref, repo } = objectOf(rest[end]);
    const home = embeddedRepository(call, repo);
    const name = textOf(ref);
    if (!home || name === null) return null;
    const { repositoryId, rest: fields } = home;
    const seen = { id: repositoryId, isPrivate: fields.private === true };
    const found = readsCode(call.caller, call.access, seen, "contents")
      ? await heldRef(call, { repositoryId, kind: "heads", name })
      : undefined;
    if (found === undefined) call.lacks();
    return found ? refNode(repositoryId, `refs/heads/${name}`) : null;
  };
export const baseRef = endRef("base");
export const headRef = endRef("head");

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
  const isHeld = await call
    .loader<Pick<RefKey, "repositoryId" | "kind">, boolean>("lists of refs", (lists, db) => findHeldRefLists(db, lists))
    .load({ repositoryId, kind });
  if (!isHeld) return lacking(call, "branches and tags");
  const source = refSource(kind, orderBy?.direction === "DESC" ? "desc" : "asc");
  return storedConnection(call, info, args, { kind: "Ref", source, parent: { r: repositoryId, n: 0 } });
};

const HASH = /^[0-9a-f]{40}$/;

/** The object of a hash that is a known commit's, or what a branch or tag points to. */
async function objectAt(
  { repositoryId, rest: { default_branch: branch } }: Node,
  { expression, oid }: { expression?: string | null; oid?: string | null },
  call: GraphqlCall,
): Promise<Node | null> {
  if (!(await readsCodeOf(call, repositoryId, "contents"))) return lacking(call, "branches and tags");
  const text = oid ?? expression ?? "";
  if (HASH.test(text)) return requireCommit(call, repositoryId, text);
  // What else an expression may say, such as `main:README.md` or `main~2`, takes Git.
  if (oid != null || text === "" || /[:^~@{]/.test(text)) return lacking(call, "branches and tags");
  const name = text === "HEAD" ? `refs/heads/${branch}` : text;
  const ref = await refNamed(call, repositoryId, name);
  return ref && refTarget(ref, call);
}

export const repositoryRefs: TypeResolvers = {
  // The name of the default branch is metadata. The commit that it points to is not.
  defaultBranchRef: ({ repositoryId, rest: { default_branch: name } }) =>
    typeof name === "string" && name !== "" ? refNode(repositoryId, `refs/heads/${name}`) : null,
  ref: ({ repositoryId }, { qualifiedName }: { qualifiedName: string }, call) =>
    refNamed(call, repositoryId, qualifiedName),
  object: (node, args: { expression?: string | null; oid?: string | null }, call) => objectAt(node, args, call),
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

/**
 * The pull requests that would merge a branch. Those of a fork's branches lie in other repositories, and an order or a
 * filter beside the states is upstream's to apply.
 */
const pullsOfBranch: Resolver = (node, { states, ...args }: PageArguments & PullsArguments, call, info) =>
  call.withRight({ repositoryId: node.repositoryId, right: "pulls" }, async () => {
    const { repositoryId } = node;
    const { kind, name } = shownRefName(node);
    const { rest: repository } = await call.requireRepositoryById(repositoryId);
    const { orderBy, labels, headRefName, baseRefName } = args;
    if (repository.fork !== false || [orderBy, labels, headRefName, baseRefName].some((one) => one != null))
      return lacking(call, "branches and tags");
    const numbers =
      kind === "tags"
        ? []
        : await call
            .loader<{ repositoryId: number; name: string }, number[] | null>("pulls of branches", (branches) =>
              // It looks at all pull requests of the repository: so it takes its caller's place among the searches.
              findPullsOfBranches(call.searchDb, branches),
            )
            .load({ repositoryId, name });
    if (!numbers) return lacking(call, "branches and tags");
    const found = await Promise.all(numbers.map((number) => call.numbered("PullRequest", repositoryId, number)));
    const pulls = found.filter((pull) => pull !== null);
    const shown = states?.length ? pulls.filter((pull) => states.some((state) => state === pullState(pull))) : pulls;
    return heldConnection(info, args, shown, { keyOf: ({ rest: { created_at } }) => String(created_at) });
  });

export const refResolvers: Readonly<Record<string, TypeResolvers>> = {
  Ref: {
    ...ofRepository,
    associatedPullRequests: pullsOfBranch,
    branchProtectionRule: (node, _args, call) =>
      protectionRule(call, { repositoryId: node.repositoryId, ...shownRefName(node) }),
    name: (node) => shownRefName(node).name,
    prefix: (node) => `refs/${shownRefName(node).kind}/`,
    target: (node, _args, call) => refTarget(node, call),
  },
  Tag: {
    ...ofRepository,
    abbreviatedOid: ({ rest: { oid } }) => String(oid).slice(0, 7),
    commitUrl: (node, _args, call) => commitPage(node, call),
    commitResourcePath: async (node, _args, call) => pathnameOf(await commitPage(node, call)),
    id: (_node, _args, call) => lacking(call, "branches and tags"),
    name: ({ rest: { name } }) => name,
    oid: ({ rest: { oid } }) => oid,
    target: ({ repositoryId, rest: { commit } }, _args, call) =>
      commitNode(repositoryId, commit) ?? lacking(call, "branches and tags"),
  },
};
