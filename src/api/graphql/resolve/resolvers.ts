/** The resolver of each field. A field shows its part of the same resource as REST represents it. */

import type { GraphqlCall } from "../call.ts";
import { typedError } from "../errors.ts";
import type { FieldInfo } from "../run/plan.ts";
import { accountNamed, accountResolvers, ownsRepositories } from "./accounts.ts";
import { checkResolvers } from "./checks.ts";
import { commitResolvers } from "./commits.ts";
import type { TypeResolvers } from "./fields.ts";
import { issue, pullRequest } from "./issues.ts";
import { label, milestone } from "./labels-milestones.ts";
import { nodeOf, requireRepositoryNamed, resourceAt } from "./lookups.ts";
import { refResolvers } from "./refs.ts";
import { releaseResolvers } from "./releases.ts";
import { repository } from "./repository.ts";
import { topicResolvers } from "./repository-details.ts";
import { reviewResolvers } from "./reviews.ts";
import { search } from "./search.ts";
import { threadResolvers } from "./threads.ts";

export const typeResolvers: Record<string, TypeResolvers> = {
  ...accountResolvers,
  Repository: repository,
  Issue: issue,
  PullRequest: pullRequest,
  RepositoryTopic: topicResolvers,
  Label: label,
  Milestone: milestone,
  ...reviewResolvers,
  ...threadResolvers,
  ...checkResolvers,
  ...commitResolvers,
  ...releaseResolvers,
  ...refResolvers,
};

/** How many ids a query may name at once; more are refused. */
const MAX_IDS = 100;

type RootResolver = (root: unknown, args: never, call: GraphqlCall, info: FieldInfo) => unknown;

export const queryResolvers: Record<string, RootResolver> = {
  viewer: async (_root, _args, call) => {
    const viewer = await call.user(call.caller.userId);
    if (viewer) return viewer;
    call.lacks();
    throw typedError("NOT_FOUND", "The account that this token answers as is not mirrored.");
  },
  user: async (_root, { login }: { login: string }, call) =>
    accountNamed(call, login, "User", (kind) => kind === "User"),
  organization: async (_root, { login }: { login: string }, call) =>
    accountNamed(call, login, "Organization", (kind) => kind === "Organization"),
  repositoryOwner: async (_root, { login }: { login: string }, call) => {
    const found = await call.userNamed(login);
    if (found && ownsRepositories(found)) return found;
    call.lacks();
    return null;
  },
  repository: (
    _root,
    { owner, name: repo, followRenames }: { owner: string; name: string; followRenames?: boolean | null },
    call,
  ) => requireRepositoryNamed(call, owner, repo, followRenames ?? true),
  node: (_root, { id }: { id: string }, call) => nodeOf(call, id),
  nodes: (_root, { ids }: { ids: string[] }, call) => {
    if (ids.length > MAX_IDS) {
      throw typedError(
        "ARGUMENT_LIMIT",
        `You may not provide more than ${MAX_IDS} node ids; you provided ${ids.length}.`,
      );
    }
    return ids.map((id) => nodeOf(call, id));
  },
  resource: (_root, { url }: { url: string }, call) => resourceAt(call, url),
  search,
  rateLimit: (_root, _args, { cost, figures }) =>
    figures && {
      cost: cost.points,
      nodeCount: cost.nodeCount,
      limit: figures.limit,
      remaining: figures.remaining,
      used: figures.used,
      resetAt: `${new Date(figures.reset * 1_000).toISOString().slice(0, 19)}Z`,
    },
};
