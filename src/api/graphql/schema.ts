import { readFileSync } from "node:fs";
import {
  buildSchema,
  GraphQLError,
  type GraphQLFieldResolver,
  GraphQLScalarType,
  type GraphQLSchema,
  isAbstractType,
  isInterfaceType,
  isObjectType,
  isScalarType,
} from "graphql";
import type { Change, ChangesOf } from "../../events/log-reads.ts";
import type { GraphqlCall } from "./call.ts";
import { typedError } from "./errors.ts";
import { mutationResolvers } from "./mutate/mutations.ts";
import type { Node } from "./node.ts";
import { accountNamed, accountResolvers, ownsRepositories } from "./resolve/accounts.ts";
import { checkResolvers } from "./resolve/checks.ts";
import { commitResolvers } from "./resolve/commits.ts";
import type { TypeResolvers } from "./resolve/fields.ts";
import { issue, pullRequest } from "./resolve/issues.ts";
import { label, milestone } from "./resolve/labels-milestones.ts";
import { nodeOf, resourceAt } from "./resolve/lookups.ts";
import { refResolvers } from "./resolve/refs.ts";
import { releaseResolvers } from "./resolve/releases.ts";
import { namedRepository, repository } from "./resolve/repository.ts";
import { topicResolvers } from "./resolve/repository-details.ts";
import { reviewResolvers } from "./resolve/reviews.ts";
import { search } from "./resolve/search.ts";
import { threadResolvers } from "./resolve/threads.ts";
import type { FieldInfo } from "./run/plan.ts";

/** The schema that is served, with the resolver of each field. */
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
    if (isAbstractType(type)) type.resolveType = (node: Node) => node.kind;
    const { databaseId } = isObjectType(type) || isInterfaceType(type) ? type.getFields() : {};
    if (databaseId) databaseId.type = wideInt;
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

/** The text, if it is a time. @throws GraphQLError for any other text */
function checkedTime(value: unknown): string {
  if (typeof value === "string" && !Number.isNaN(Date.parse(value))) return value;
  throw new GraphQLError(
    `Could not parse a DateTime from ${JSON.stringify(value)}: it should look like 2026-01-31T12:00:00Z`,
  );
}

const typeResolvers: Readonly<Record<string, TypeResolvers>> = {
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
  repository: namedRepository,
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

/** A field of `Subscription`: what starts its stream, and what each event shows. */
interface SubscriptionField {
  subscribe: (root: unknown, args: { repositoryId: string }, call: GraphqlCall) => Promise<AsyncIterable<Change>>;
  resolve: (change: Change, args: { repositoryId: string }, call: GraphqlCall) => unknown;
}

function changesField(kind: ChangesOf["kind"], key: "issue" | "pullRequest"): SubscriptionField {
  const right = kind === "issue" ? "issues" : "pulls";
  return {
    subscribe: async (_root, { repositoryId }, call) => {
      const { repositoryId: id } = await repositoryNode(call, repositoryId);
      return call.withRight({ repositoryId: id, right }, () => call.changes.open({ repositoryId: id, kind }));
    },
    resolve: async ({ number }, { repositoryId }, call) => {
      // Rights are checked at each event: a caller who has lost sight of the repository hears no more of it.
      const { repositoryId: id } = await repositoryNode(call, repositoryId);
      const node = await call.withRight({ repositoryId: id, right }, () =>
        call.numbered(kind === "issue" ? "Issue" : "PullRequest", id, number),
      );
      return { number, [key]: node };
    },
  };
}

async function repositoryNode(call: GraphqlCall, globalId: string): Promise<Node> {
  const node = await nodeOf(call, globalId);
  if (node.kind === "Repository") return node;
  throw typedError("NOT_FOUND", `Could not resolve to Repository node with the global id of '${globalId}'.`);
}

const subscriptionFields: Readonly<Record<string, SubscriptionField>> = {
  issueChanged: changesField("issue", "issue"),
  pullRequestChanged: changesField("pull_request", "pullRequest"),
};
