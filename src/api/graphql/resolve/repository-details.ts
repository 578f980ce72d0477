/** Fields that only REST's single repository shows: permissions, merge settings, its origin, and its people. */

import { type Fields, isObject, type Json, objectOf } from "../../../json.ts";
import { findEachHeldPeople } from "../../../mirror/read/people.ts";
import { sees } from "../../../mirror/read/repositories.ts";
import { assignableUserSource } from "../../../mirror/read/users.ts";
import { listOfRepository, type PeopleListKey } from "../../../mirror/store/people.ts";
import { accessLevelOf, learnPublicRights, type Permissions, permissionsOf } from "../../callers/permissions.ts";
import type { RepositoryPermission } from "../../callers/upstream-rights.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Node } from "../call/node.ts";
import { typedError } from "../run/errors.ts";
import { heldConnection, type PageArguments, pageRequest, storedConnection } from "./connection.ts";
import { fieldNotHeld, onceRead, pathnameOf, type Resolver, type TypeResolvers } from "./fields.ts";

async function rightsOf({ repositoryId, rest }: Node, call: GraphqlCall): Promise<Rights | null> {
  const { caller } = call;
  // GitHub's schema: null "for authentication as a GitHub App".
  if (caller.by.of === "upstream" && caller.by.known.profile === null) return null;
  const { node_id: nodeId, private: isPrivate, permissions } = rest;
  const learnt = new Map<number, RepositoryPermission>();
  if (isPrivate === false && typeof nodeId === "string") {
    call.showsRights();
    await learnPublicRights({ caller, publicRights: learnt }, [{ id: repositoryId, nodeId, isPrivate }]);
  }
  const rights = permissionsOf(caller, repositoryId, isObject(permissions) ? permissions : null, learnt);
  if (!rights) call.lacks();
  return rights;
}

/** Permissions that upstream gives the mirror's own token, or those that the mirror gives its callers. */
type Rights = Permissions | Fields;

function permission(rights: Rights | null): string | null {
  if (rights?.admin) return "ADMIN";
  if (rights?.maintain) return "MAINTAIN";
  if (rights?.push) return "WRITE";
  if (rights?.triage) return "TRIAGE";
  return rights?.pull ? "READ" : null;
}

/** A merge setting. REST shows it only to those who may push; others are shown the default of a new repository. */
const setting =
  (key: string, usual: boolean): Resolver =>
  ({ rest }, _args, call) => {
    if (rest[key] == null) call.lacks();
    return rest[key] ?? usual;
  };

/** A repository that the caller may not see is shown as a deleted one. */
export function embeddedRepository(call: GraphqlCall, value: Json | undefined): Node | null {
  const fields = objectOf(value);
  const one = { id: Number(fields.id), isPrivate: fields.private === true };
  const isSeen = typeof fields.id === "number" && sees(call.access, one, "metadata");
  if (!isSeen && isObject(value)) call.lacks();
  return isSeen ? { kind: "Repository", repositoryId: Number(fields.id), rest: fields } : null;
}

export const repositoryDetails: TypeResolvers = {
  viewerPermission: async (node, _args, call) => permission(await rightsOf(node, call)),
  viewerCanAdminister: async (node, _args, call) => (await rightsOf(node, call))?.admin === true,
  mergeCommitAllowed: setting("allow_merge_commit", true),
  rebaseMergeAllowed: setting("allow_rebase_merge", true),
  squashMergeAllowed: setting("allow_squash_merge", true),
  deleteBranchOnMerge: setting("delete_branch_on_merge", false),
  allowUpdateBranch: setting("allow_update_branch", false),
  autoMergeAllowed: setting("allow_auto_merge", false),
  forkingAllowed: onceRead("allow_forking"),
  webCommitSignoffRequired: onceRead("web_commit_signoff_required"),
  // REST does not tell when a repository was archived.
  archivedAt: ({ rest: { archived }, kind }, _args, call, info) => (archived ? fieldNotHeld(call, info, kind) : null),
  parent: ({ rest: { parent } }, _args, call) => embeddedRepository(call, parent),
  templateRepository: ({ rest: { template_repository } }, _args, call) => embeddedRepository(call, template_repository),
  repositoryTopics: ({ repositoryId, rest: { topics } }, args: PageArguments, _call, info) => {
    const held = (Array.isArray(topics) ? topics : []).map(
      (name): Node => ({ kind: "RepositoryTopic", repositoryId, rest: { id: 0, name } }),
    );
    return heldConnection(info, args, held, { keyOf: (_node, at) => String(at).padStart(4, "0") });
  },
  // Only the number of watchers is mirrored, and not who they are.
  watchers: (node, args: PageArguments, call, info) => {
    pageRequest(info, args, () => null);
    const refused = () => {
      call.lacks();
      throw typedError("UNPROCESSABLE", "Who watches a repository is not mirrored: ask for `totalCount` alone.");
    };
    const totalCount = () => onceRead("subscribers_count")(node, args, call, info);
    return { totalCount, nodes: refused, edges: refused, pageInfo: refused };
  },
  stargazers: ({ rest: { stargazers_count } }, args: PageArguments, _call, info) => {
    pageRequest(info, args, () => null);
    return { totalCount: stargazers_count };
  },
  assignableUsers: async (node, args: PageArguments & { query?: string | null }, call, info) => {
    const { repositoryId } = node;
    await call.requireRepositoryById(repositoryId);
    // Upstream's list may name members of whom strangers must not know.
    const isStranger = accessLevelOf(call.caller, repositoryId) === "stranger";
    const held = call.loader("held people", (keys: PeopleListKey[], db) => findEachHeldPeople(db, keys));
    const isWhole = !isStranger && (await held.load(listOfRepository(repositoryId, "assignees"))) !== null;
    if (!isWhole) call.hasPart();
    return call.withRight({ repositoryId, right: "issues or pulls" }, () =>
      storedConnection(call, info, args, {
        kind: "User",
        source: assignableUserSource({ ...args, isWhole }),
        parent: { r: repositoryId, n: 0 },
      }),
    );
  },
};

/** Topics have pages beside the repositories'. */
const topicPage = async ({ repositoryId, rest: { name } }: Node, call: GraphqlCall): Promise<string> =>
  new URL(`/topics/${name}`, String((await call.requireRepositoryById(repositoryId)).rest.html_url)).href;

export const topicResolvers: TypeResolvers = {
  topic: ({ rest: { name } }) => ({ name }),
  url: (node, _args, call) => topicPage(node, call),
  resourcePath: async (node, _args, call) => pathnameOf(await topicPage(node, call)),
};
