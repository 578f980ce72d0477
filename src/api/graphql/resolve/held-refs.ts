/** The branches and tags that the mirror holds, and what it knows of their protection. */
import { objectOf, textOf } from "../../../json.ts";
import { type FoundRef, findRefs } from "../../../mirror/read/refs.ts";
import type { RefName } from "../../../mirror/store/refs.ts";
import { readsCode } from "../../callers/permissions.ts";
import { decodeId } from "../../dialect/node-id.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Node } from "../call/node.ts";
import { fieldNotHeld, type Resolver } from "./fields.ts";

/** A ref, and where it is. */
export type RefKey = RefName & { repositoryId: number };

/** The ref as the mirror has it, for callers who may see it. Null: there is no such ref. Undefined: not held. */
export function heldRef(call: GraphqlCall, key: RefKey): Promise<FoundRef | null | undefined> {
  return call.loader<RefKey, FoundRef | null | undefined>("refs", (keys, db) => findRefs(db, keys)).load(key);
}

/** Whether neither protection nor a ruleset covers the branch. False: only upstream knows. */
async function isUnprotected(call: GraphqlCall, { repositoryId, kind, name }: RefKey): Promise<boolean> {
  const { rest } = await call.requireRepositoryById(repositoryId);
  const seen = { id: repositoryId, isPrivate: rest.private === true };
  if (kind !== "heads" || !readsCode(call.caller, call.access, seen, "contents")) return false;
  return (await heldRef(call, { repositoryId, kind, name }))?.isProtected === false;
}

/** No rule of an unprotected branch; null also where the mirror does not know. */
export async function protectionRule(call: GraphqlCall, key: RefKey): Promise<null> {
  if (!(await isUnprotected(call, key))) call.lacks();
  return null;
}

/** Whether nothing protects the base of the pull request. False: only upstream knows. */
export async function hasFreeBase(call: GraphqlCall, { repositoryId, rest }: Node): Promise<boolean> {
  const name = textOf(objectOf(rest.base).ref);
  return name !== null && (await isUnprotected(call, { repositoryId, kind: "heads", name }));
}

/** No queue of an unprotected branch: a rule makes one. */
export const mergeQueue: Resolver = async (
  { kind, repositoryId, rest: { default_branch } },
  { branch }: { branch?: string | null },
  call,
  info,
) => {
  const name = branch ?? textOf(default_branch);
  const isFree = name !== null && (await isUnprotected(call, { repositoryId, kind: "heads", name }));
  return isFree ? null : fieldNotHeld(call, info, kind);
};

/** Whether a pull request cannot be merged without the check. Nothing is required where nothing protects the base. */
export const isRequired: Resolver = async (
  node,
  { pullRequestId, pullRequestNumber }: { pullRequestId?: string | null; pullRequestNumber?: number | null },
  call,
  info,
) => {
  const { repositoryId } = node;
  const pull = await pullNamed(call, repositoryId, { id: pullRequestId, number: pullRequestNumber });
  return pull && (await hasFreeBase(call, pull)) ? false : fieldNotHeld(call, info, node.kind);
};

/** The pull request of this repository that is named in one of two ways. Null: it is not here, or not named so. */
async function pullNamed(
  call: GraphqlCall,
  repositoryId: number,
  { id, number }: { id: string | null | undefined; number: number | null | undefined },
): Promise<Node | null> {
  if (number != null) return id == null ? await call.numbered("PullRequest", repositoryId, number) : null;
  const named = id == null ? null : decodeId(id);
  const pull = named?.type === "PullRequest" ? await call.byId("PullRequest", named.id) : null;
  return pull?.repositoryId === repositoryId ? pull : null;
}
