/** What each field shows, from REST's representation of the same resource. */

import { sql } from "../../../../db/sql.ts";
import type { Fields, Json } from "../../../mirror/store/template.ts";
import { actorOf, type GraphqlCall, type Node } from "../call.ts";
import { typedError } from "../errors.ts";
import { commitOfPull, pullMerging } from "../mutate/pull-merging.ts";
import type { FieldInfo } from "../run/plan.ts";
import { type Connection, heldConnection, type PageArguments, storedConnection } from "./connection.ts";
import {
  account,
  comment,
  databaseId,
  enumValue,
  notMirrored,
  object,
  ofRepository,
  onceRead,
  path,
  pathOf,
  type Resolver,
  requireRepository,
  rest,
  type TypeResolvers,
  upper,
} from "./fields.ts";
import { nodeOf, repositoryOf } from "./lookups.ts";
import { pullReactionGroups, reactionGroups } from "./reactions.ts";
import { embeddedRepository, repositoryDetails, topicResolvers } from "./repository-details.ts";
import { resourceAt } from "./resource.ts";
import { latestReviews, reviewRequests, reviewResolvers } from "./reviews.ts";
import { search } from "./search.ts";
import * as sources from "./sources.ts";

const actor: TypeResolvers = {
  id: rest("node_id"),
  databaseId,
  // REST marks bots by their login.
  login: ({ kind, rest: { login } }) => (kind === "Bot" ? String(login).replace(/\[bot\]$/, "") : login),
  url: rest("html_url"),
  resourcePath: path,
  avatarUrl: (node, { size }: { size?: number | null }) => {
    const url = URL.parse(String(node.rest.avatar_url));
    if (!url) return node.rest.avatar_url;
    if (size != null) url.searchParams.set("s", String(size));
    return url.href;
  },
};

/** An account that is embedded in another resource comes without its name. */
const name: Resolver = ({ rest }, _args, call) => {
  if ("name" in rest) return rest.name;
  const known = call.knownUser(Number(rest.id));
  if (known !== undefined) return known?.name ?? null;
  return call.user(Number(rest.id)).then((found) => found?.rest.name ?? null);
};

const repositoryOwner: TypeResolvers = {
  repositories: (node, args: PageArguments & sources.RepositoriesArguments, call, info) => {
    const source = sources.repositories(call.caller.userId, call.sight, args);
    const connection = storedConnection(call, info, args, {
      kind: "Repository",
      source,
      parent: { r: Number(node.rest.id), n: 0 },
    });
    return { ...connection, totalDiskUsage: () => connection.sum(sql`coalesce(r.size, 0)`) };
  },
  repository: (node, { name, followRenames }: { name: string; followRenames?: boolean | null }, call) =>
    repositoryOf(call, String(node.rest.login), name, followRenames ?? true),
};

const issueOrPull: TypeResolvers = {
  ...comment,
  number: rest("number"),
  title: rest("title"),
  closed: ({ rest: { state } }) => state === "closed",
  closedAt: rest("closed_at"),
  locked: ({ rest: { locked } }) => locked === true,
  activeLockReason: upper("active_lock_reason"),
  milestone: ({ rest: { milestone }, repositoryId }) => held("Milestone", repositoryId, [milestone ?? null])[0] ?? null,
  labels: (
    { rest: { labels }, repositoryId },
    args: PageArguments & { orderBy?: sources.Order | null },
    _call,
    info,
  ): Connection => {
    const byName = args.orderBy?.field === "NAME";
    const keyOf = ({ rest: label }: Node) =>
      byName ? String(label.name).toLowerCase() : String(label.id).padStart(20, "0");
    return heldConnection(info, args, held("Label", repositoryId, labels), {
      keyOf,
      direction: args.orderBy?.direction === "DESC" ? "desc" : "asc",
    });
  },
  assignees: ({ rest: { assignees } }, args: PageArguments, _call, info) =>
    // In the order in which REST has them.
    heldConnection(info, args, held("User", 0, assignees), { keyOf: (_node, at) => String(at).padStart(4, "0") }),
  // Classic projects are gone from the service; those of an old enterprise server are not mirrored.
  projectCards: (_node, args: PageArguments, _call, info) => heldConnection(info, args, [], { keyOf: () => "" }),
  comments: (
    { rest: { number }, repositoryId },
    args: PageArguments & { orderBy?: sources.Order | null },
    call,
    info,
  ) =>
    storedConnection(call, info, args, {
      kind: "IssueComment",
      source: sources.issueComments(args.orderBy),
      parent: { r: repositoryId, n: Number(number) },
    }),
};

function held(kind: "Label" | "Milestone" | "User", repositoryId: number, value: Json | undefined): Node[] {
  const objects = (Array.isArray(value) ? value : []).filter(
    (one): one is Fields => typeof one === "object" && one !== null && !Array.isArray(one),
  );
  return objects.map((one) => ({ kind, repositoryId, rest: one }));
}

const issue: TypeResolvers = {
  ...issueOrPull,
  reactionGroups,
  state: upper("state"),
  stateReason: ({ rest: { state_reason } }, { enableDuplicate }: { enableDuplicate?: boolean | null }) => {
    const reason = enumValue(state_reason);
    // Clients from before there were duplicates know only this.
    return reason === "DUPLICATE" && !enableDuplicate ? "NOT_PLANNED" : reason;
  },
};

const pullRequest: TypeResolvers = {
  ...issueOrPull,
  ...pullMerging,
  reactionGroups: pullReactionGroups,
  state: ({ rest: { merged_at, state } }) => (merged_at ? "MERGED" : enumValue(state)),
  permalink: rest("html_url"),
  isDraft: ({ rest: { draft } }) => draft === true,
  merged: ({ rest: { merged_at } }) => merged_at != null,
  mergedAt: rest("merged_at"),
  mergedBy: (node, args, call, info) =>
    node.rest.merged_at == null ? null : actorOf(onceRead("merged_by")(node, args, call, info) as Json),
  mergeable: ({ rest: { mergeable } }) =>
    mergeable === true ? "MERGEABLE" : mergeable === false ? "CONFLICTING" : "UNKNOWN",
  maintainerCanModify: onceRead("maintainer_can_modify"),
  additions: onceRead("additions"),
  deletions: onceRead("deletions"),
  changedFiles: onceRead("changed_files"),
  totalCommentsCount: ({ rest: { comments, review_comments } }) =>
    typeof comments === "number" && typeof review_comments === "number" ? comments + review_comments : null,
  baseRefName: ({ rest: { base } }) => object(base).ref,
  baseRefOid: ({ rest: { base } }) => object(base).sha,
  headRefName: ({ rest: { head } }) => object(head).ref,
  headRefOid: ({ rest: { head } }) => object(head).sha,
  baseRepository: (node, _args, call) => requireRepository(call, node.repositoryId),
  headRepository: ({ rest: { head } }, _args, call) => embeddedRepository(call, object(head).repo),
  headRepositoryOwner: ({ rest: { head } }) => {
    const owner = actorOf(object(head).user);
    return owner && ownsRepositories(owner) ? owner : null;
  },
  isCrossRepository: ({ rest: { head }, repositoryId }) => object(object(head).repo).id !== repositoryId,
  reviewRequests: (node, args: PageArguments, _call, info) => reviewRequests(node, args, info),
  latestReviews,
  reviews: (
    { rest: { number }, repositoryId },
    args: PageArguments & { author?: string | null; states?: string[] | null },
    call,
    info,
  ) =>
    storedConnection(call, info, args, {
      kind: "PullRequestReview",
      source: sources.reviews(args),
      parent: { r: repositoryId, n: Number(number) },
    }),
};

function ownsRepositories({ kind }: Node): boolean {
  return kind === "User" || kind === "Organization";
}

/** What lies under a label or a milestone. */
function listedUnder(above: "label" | "milestone"): TypeResolvers {
  const list =
    (kind: "Issue" | "PullRequest", source: (args: never, above: sources.Above) => sources.Source): Resolver =>
    (node, args: PageArguments, call, info) =>
      storedConnection(call, info, args, {
        kind,
        source: source(args as never, above),
        parent: { r: node.repositoryId, n: Number(node.rest.id) },
      });
  return { issues: list("Issue", sources.issues), pullRequests: list("PullRequest", sources.pulls) };
}

/** A list of what belongs to a repository; one that is only known as the head of a pull request has none to show. */
function listed(kind: Node["kind"], source: (args: never) => sources.Source): Resolver {
  return async (node, args: PageArguments, call, info) => {
    await requireRepository(call, node.repositoryId);
    return storedConnection(call, info, args, {
      kind,
      source: source(args as never),
      parent: { r: node.repositoryId, n: 0 },
    });
  };
}

const repository: TypeResolvers = {
  ...repositoryDetails,
  id: rest("node_id"),
  databaseId,
  name: rest("name"),
  nameWithOwner: rest("full_name"),
  owner: account("owner"),
  description: rest("description"),
  homepageUrl: ({ rest: { homepage } }) => homepage || null,
  url: rest("html_url"),
  resourcePath: path,
  sshUrl: rest("ssh_url"),
  mirrorUrl: rest("mirror_url"),
  visibility: ({ rest: { visibility, private: isPrivate } }) =>
    enumValue(visibility) ?? (isPrivate ? "PRIVATE" : "PUBLIC"),
  isPrivate: rest("private"),
  isFork: rest("fork"),
  isArchived: ({ rest: { archived } }) => archived === true,
  isDisabled: ({ rest: { disabled } }) => disabled === true,
  isTemplate: ({ rest: { is_template } }) => is_template === true,
  isMirror: ({ rest: { mirror_url } }) => mirror_url != null,
  isInOrganization: ({ rest: { owner } }) => object(owner).type === "Organization",
  createdAt: rest("created_at"),
  updatedAt: rest("updated_at"),
  pushedAt: rest("pushed_at"),
  defaultBranchRef: ({ rest: { default_branch } }) => (default_branch ? { name: default_branch } : null),
  primaryLanguage: ({ rest: { language } }) => (language ? { name: language } : null),
  licenseInfo: ({ rest: { license } }) =>
    license
      ? { key: object(license).key, name: object(license).name, spdxId: object(license).spdx_id, nickname: null }
      : null,
  stargazerCount: rest("stargazers_count"),
  forkCount: rest("forks_count"),
  diskUsage: rest("size"),
  hasIssuesEnabled: ({ rest: { has_issues } }) => has_issues === true,
  hasProjectsEnabled: ({ rest: { has_projects } }) => has_projects === true,
  hasWikiEnabled: ({ rest: { has_wiki } }) => has_wiki === true,
  hasDiscussionsEnabled: ({ rest: { has_discussions } }) => has_discussions === true,
  issue: ({ repositoryId }, { number }: { number: number }, call) => numbered(call, "Issue", repositoryId, number),
  pullRequest: ({ repositoryId }, { number }: { number: number }, call) =>
    numbered(call, "PullRequest", repositoryId, number),
  issueOrPullRequest: ({ repositoryId }, { number }: { number: number }, call) =>
    issueOrPullRequest(call, repositoryId, number),
  label: ({ repositoryId }, { name: label }: { name: string }, call) => call.label(repositoryId, label),
  milestone: ({ repositoryId }, { number }: { number: number }, call) =>
    call.numbered("Milestone", repositoryId, number),
  issues: listed("Issue", sources.issues),
  pullRequests: listed("PullRequest", sources.pulls),
  labels: listed("Label", sources.labels),
  milestones: listed("Milestone", sources.milestones),
};

async function numbered(
  call: GraphqlCall,
  kind: "Issue" | "PullRequest",
  repositoryId: number,
  number: number,
): Promise<Node> {
  const found = await call.numbered(kind, repositoryId, number);
  // The number of a pull request names no issue.
  if (found && !(kind === "Issue" && isPullRequest(found))) return found;
  throw typedError(
    "NOT_FOUND",
    `Could not resolve to ${kind === "Issue" ? "an Issue" : "a PullRequest"} with the number of ${number}.`,
  );
}

async function issueOrPullRequest(call: GraphqlCall, repositoryId: number, number: number): Promise<Node> {
  const [pull, found] = await Promise.all([
    call.numbered("PullRequest", repositoryId, number),
    call.numbered("Issue", repositoryId, number),
  ]);
  const node = pull ?? (found && !isPullRequest(found) ? found : null);
  if (node) return node;
  throw typedError("NOT_FOUND", `Could not resolve to an issue or pull request with the number of ${number}.`);
}

function isPullRequest({ rest: fields }: Node): boolean {
  return fields.pull_request != null;
}

const label: TypeResolvers = {
  ...ofRepository,
  ...listedUnder("label"),
  id: rest("node_id"),
  name: rest("name"),
  color: rest("color"),
  description: rest("description"),
  isDefault: rest("default"),
  createdAt: notMirrored,
  updatedAt: notMirrored,
  url: async (node, _args, call) => labelPage(node, await requireRepository(call, node.repositoryId)),
  resourcePath: async (node, _args, call) => pathOf(labelPage(node, await requireRepository(call, node.repositoryId))),
};

function labelPage(node: Node, { rest: { html_url } }: Node): string {
  return `${html_url}/labels/${encodeURIComponent(String(node.rest.name))}`;
}

const milestone: TypeResolvers = {
  ...ofRepository,
  ...listedUnder("milestone"),
  progressPercentage: ({ rest: { open_issues, closed_issues } }) => {
    const [open, closed] = [Number(open_issues), Number(closed_issues)];
    return closed > 0 ? (closed / (open + closed)) * 100 : 0;
  },
  id: rest("node_id"),
  number: rest("number"),
  title: rest("title"),
  description: rest("description"),
  state: upper("state"),
  closed: ({ rest: { state } }) => state === "closed",
  closedAt: rest("closed_at"),
  dueOn: rest("due_on"),
  createdAt: rest("created_at"),
  updatedAt: rest("updated_at"),
  creator: account("creator"),
  url: rest("html_url"),
  resourcePath: path,
};

export const typeResolvers: Record<string, TypeResolvers> = {
  User: {
    ...actor,
    ...repositoryOwner,
    name,
    isSiteAdmin: ({ rest: { site_admin } }) => site_admin === true,
    isViewer: ({ rest: { id } }, _args, call) => id === call.caller.userId,
  },
  Organization: { ...actor, ...repositoryOwner, name },
  Bot: actor,
  Mannequin: actor,
  Repository: repository,
  Issue: issue,
  PullRequest: pullRequest,
  PullRequestCommit: commitOfPull,
  RepositoryTopic: topicResolvers,
  Label: label,
  Milestone: milestone,
  ...reviewResolvers,
};

/** More than these ids at once are refused. */
const MAX_IDS = 100;

type RootResolver = (root: unknown, args: never, call: GraphqlCall, info: FieldInfo) => unknown;

export const queryResolvers: Record<string, RootResolver> = {
  viewer: async (_root, _args, call) => {
    const viewer = await call.user(call.caller.userId);
    if (!viewer) throw typedError("NOT_FOUND", "The account that this token answers as is not mirrored.");
    return viewer;
  },
  user: async (_root, { login }: { login: string }, call) =>
    accountNamed(call, login, "User", (kind) => kind === "User"),
  organization: async (_root, { login }: { login: string }, call) =>
    accountNamed(call, login, "Organization", (kind) => kind === "Organization"),
  repositoryOwner: async (_root, { login }: { login: string }, call) => {
    const found = await call.userNamed(login);
    return found && ownsRepositories(found) ? found : null;
  },
  repository: (
    _root,
    { owner, name: repo, followRenames }: { owner: string; name: string; followRenames?: boolean | null },
    call,
  ) => repositoryOf(call, owner, repo, followRenames ?? true),
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

async function accountNamed(
  call: GraphqlCall,
  login: string,
  what: string,
  isWanted: (kind: string) => boolean,
): Promise<Node> {
  const found = await call.userNamed(login);
  if (found && isWanted(found.kind)) return found;
  throw typedError(
    "NOT_FOUND",
    `Could not resolve to ${what === "User" ? "a User" : "an Organization"} with the login of '${login}'.`,
  );
}
