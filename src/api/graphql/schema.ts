import { readFileSync } from "node:fs";
import {
  buildSchema,
  type GraphQLEnumType,
  type GraphQLFieldResolver,
  GraphQLScalarType,
  type GraphQLSchema,
  isAbstractType,
  isEnumType,
  isInterfaceType,
  isObjectType,
  isScalarType,
} from "graphql";
import { objectOf } from "../../json.ts";
import type { Right } from "../../kinds/contract/rights.ts";
import { issueSource } from "../../mirror/read/issues.ts";
import { labelSource } from "../../mirror/read/labels.ts";
import { milestoneSource } from "../../mirror/read/milestones.ts";
import { findIssueDocuments, type PageSource } from "../../mirror/read/pages.ts";
import { pullSource } from "../../mirror/read/pulls.ts";
import type { StoredDocument } from "../../mirror/render/rendering.ts";
import { readTime } from "../../mirror/search/range.ts";
import type { GraphqlCall } from "./call/call.ts";
import type { Node } from "./call/node.ts";
import { mutationResolvers } from "./mutate/mutations.ts";
import { accountNamed, accountResolvers, ownsRepositories } from "./resolve/accounts.ts";
import { checkResolvers } from "./resolve/checks.ts";
import { commitResolvers } from "./resolve/commits.ts";
import { type KeptRows, type PageArguments, storedConnection } from "./resolve/connection.ts";
import { deploymentResolvers, repositoryDeployments } from "./resolve/deployments.ts";
import {
  account,
  databaseId,
  enumValue,
  given,
  nodeId,
  type Resolver,
  resourcePath,
  rest,
  type TypeResolvers,
} from "./resolve/fields.ts";
import { mergeQueue } from "./resolve/held-refs.ts";
import { issue, pullRequest } from "./resolve/issues.ts";
import { label, milestone } from "./resolve/labels-milestones.ts";
import { nodeOf, resourceAt } from "./resolve/lookups.ts";
import { autoMerging } from "./resolve/pull-merging.ts";
import { refResolvers, repositoryRefs } from "./resolve/refs.ts";
import { releaseResolvers, repositoryReleases } from "./resolve/releases.ts";
import { repositoryDetails, topicResolvers } from "./resolve/repository-details.ts";
import { reviewResolvers } from "./resolve/reviews.ts";
import { search } from "./resolve/search.ts";
import { threadResolvers } from "./resolve/threads.ts";
import { eventResolvers, eventTypeOf } from "./resolve/timelines.ts";
import { typedError } from "./run/errors.ts";
import type { FieldInfo } from "./run/plan.ts";
import { subscriptionFields } from "./subscribe/fields.ts";

/**
 * The schema that is served, with the resolver of each field. Here stand those of queries and of repositories, where most
 * queries begin.
 */
export function apiSchema(): GraphQLSchema {
  const text = readFileSync(new URL("./schema.graphql", import.meta.url), "utf8");
  // test/api/graphql-schema.test.ts validates it: at each start that would take longer than all else here.
  const schema = buildSchema(text, { assumeValid: true });
  const resolvers: Record<string, Record<string, unknown>> = {
    ...typeResolvers,
    Query: queryResolvers,
    Mutation: mutationResolvers,
  };
  // The service answers ids beyond 32 bits all the same.
  const wideInt = new GraphQLScalarType({ name: "Int", coerceOutputValue: (value) => value });
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name === "DateTime" && isScalarType(type)) type.coerceInputValue = checkedTime;
    if (isEnumType(type)) showLaterValues(type);
    if (isAbstractType(type)) type.resolveType = typeOf;
    const { databaseId: id } = isObjectType(type) || isInterfaceType(type) ? type.getFields() : {};
    if (id) id.type = wideInt;
    if (!isObjectType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      const resolve = resolvers[type.name]?.[field.name];
      // No type can say that a field of the schema has the arguments that its resolver reads.
      if (resolve) field.resolve = resolve as GraphQLFieldResolver<unknown, unknown>;
      const subscription = type.name === "Subscription" ? subscriptionFields[field.name] : undefined;
      if (subscription) Object.assign(field, subscription);
    }
  }
  return schema;
}

/** A value that upstream's enum has got since our schema was made is shown as upstream shows it. */
function showLaterValues(type: GraphQLEnumType): void {
  const known = type.coerceOutputValue.bind(type);
  type.coerceOutputValue = (value) =>
    typeof value === "string" && /^[A-Z][A-Z0-9_]*$/.test(value) && !type.getValue(value) ? value : known(value);
}

/** The type of a node. All events are of one kind, and say themselves what they are. */
function typeOf({ kind, rest: fields }: Node): string {
  return kind === "TimelineEvent" ? (eventTypeOf(fields) ?? kind) : kind;
}

/** The text, if it is a time. Undefined: it is none, which each place refuses in its own words. */
function checkedTime(value: unknown): string | undefined {
  const read = typeof value === "string" ? readTime(value) : null;
  return read?.at.toISOString();
}

/**
 * A list of what belongs to a repository. A repository that is only known as a pull request's head has no such list.
 */
function repositoryList<Args extends object>(
  kind: Node["kind"],
  right: Right,
  source: (args: Args) => PageSource,
): Resolver {
  return async ({ repositoryId }, args: Args & PageArguments, call, info) => {
    await call.requireRepositoryById(repositoryId);
    const parent = { r: repositoryId, n: 0 };
    return call.withRight({ repositoryId, right }, () =>
      storedConnection(call, info, args, {
        ...{ kind, source: source(args), parent },
        ...(kind === "Issue" && { kept: keptIssues(call, repositoryId) }),
      }),
    );
  };
}

/** The kept texts of a repository's issues, for the lists that the repository itself shows. */
function keptIssues(call: GraphqlCall, repositoryId: number): KeptRows {
  return {
    textsIn: (view) => call.issueTexts(repositoryId, view),
    documents: (numbers, { withBody }) =>
      call
        .loader<readonly number[], ReadonlyMap<number, StoredDocument>>(
          `documents of issues ${repositoryId} ${withBody}`,
          async (pages, db) => {
            const all = [...new Set(pages.flat())];
            const found = await findIssueDocuments(db, repositoryId, all, { withBody });
            return pages.map((page) => new Map([...found].filter(([number]) => page.includes(number))));
          },
        )
        .load(numbers),
  };
}

/** What a repository shows. */
const repository: TypeResolvers = {
  ...repositoryDetails,
  ...repositoryDeployments,
  ...repositoryReleases,
  ...repositoryRefs,
  mergeQueue,
  id: nodeId,
  databaseId,
  name: rest("name"),
  nameWithOwner: rest("full_name"),
  owner: account("owner"),
  description: rest("description"),
  homepageUrl: ({ rest: { homepage } }) => homepage || null,
  url: rest("html_url"),
  resourcePath,
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
  isInOrganization: ({ rest: { owner } }) => objectOf(owner).type === "Organization",
  createdAt: rest("created_at"),
  updatedAt: rest("updated_at"),
  pushedAt: rest("pushed_at"),
  primaryLanguage: ({ rest: { language } }) => (language ? { name: language } : null),
  licenseInfo: ({ rest: { license } }) =>
    license
      ? { key: objectOf(license).key, name: objectOf(license).name, spdxId: objectOf(license).spdx_id, nickname: null }
      : null,
  stargazerCount: rest("stargazers_count"),
  forkCount: rest("forks_count"),
  diskUsage: rest("size"),
  hasIssuesEnabled: ({ rest: { has_issues } }) => has_issues === true,
  hasProjectsEnabled: ({ rest: { has_projects } }) => has_projects === true,
  hasWikiEnabled: ({ rest: { has_wiki } }) => has_wiki === true,
  hasDiscussionsEnabled: ({ rest: { has_discussions } }) => has_discussions === true,
  issue: ({ repositoryId }, { number }: { number: number }, call) =>
    call.withRight({ repositoryId, right: "issues" }, () => numbered(call, "Issue", repositoryId, number)),
  pullRequest: ({ repositoryId }, { number }: { number: number }, call) =>
    call.withRight({ repositoryId, right: "pulls" }, () => numbered(call, "PullRequest", repositoryId, number)),
  issueOrPullRequest: ({ repositoryId }, { number }: { number: number }, call) =>
    call.withRight({ repositoryId, right: "issues or pulls" }, () => issueOrPullRequest(call, repositoryId, number)),
  label: ({ repositoryId }, { name: label }: { name: string }, call) =>
    call.withRight({ repositoryId, right: "issues or pulls" }, () => call.label(repositoryId, label)),
  milestone: ({ repositoryId }, { number }: { number: number }, call) =>
    call.withRight({ repositoryId, right: "issues or pulls" }, () => call.numbered("Milestone", repositoryId, number)),
  issues: repositoryList("Issue", "issues", issueSource),
  pullRequests: repositoryList("PullRequest", "pulls", pullSource),
  // The service documents permissions for REST alone. There either of the two rights suffices.
  labels: repositoryList("Label", "issues or pulls", labelSource),
  milestones: repositoryList("Milestone", "issues or pulls", milestoneSource),
};

async function numbered(
  call: GraphqlCall,
  kind: "Issue" | "PullRequest",
  repositoryId: number,
  number: number,
): Promise<Node> {
  const found = await call.numbered(kind, repositoryId, number);
  // A pull request's number names no issue.
  if (found && !(kind === "Issue" && isPull(found))) return found;
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
  const node = pull ?? (found && !isPull(found) ? found : null);
  if (node) return given(call, node);
  throw typedError("NOT_FOUND", `Could not resolve to an issue or pull request with the number of ${number}.`);
}

function isPull({ rest: fields }: Node): boolean {
  return fields.pull_request != null;
}

const typeResolvers: Readonly<Record<string, TypeResolvers>> = {
  ...accountResolvers,
  Repository: repository,
  Issue: issue,
  PullRequest: pullRequest,
  AutoMergeRequest: autoMerging,
  RepositoryTopic: topicResolvers,
  Label: label,
  Milestone: milestone,
  ...reviewResolvers,
  ...threadResolvers,
  ...checkResolvers,
  ...commitResolvers,
  ...deploymentResolvers,
  ...releaseResolvers,
  ...refResolvers,
  ...eventResolvers,
};

/** How many ids a query may name at once; more are refused. */
const MAX_IDS = 100;

type RootResolver = (root: unknown, args: never, call: GraphqlCall, info: FieldInfo) => unknown;

const queryResolvers: Readonly<Record<string, RootResolver>> = {
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
  ) => call.requireRepository(owner, repo, followRenames ?? true),
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
