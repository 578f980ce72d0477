/** The served schema: a subset of the service's own, from its SDL, with resolvers put on its fields. */
import { readFileSync } from "node:fs";
import {
  buildSchema,
  GraphQLScalarType,
  type GraphQLSchema,
  isInterfaceType,
  isObjectType,
  isUnionType,
} from "graphql";
import { EVENT_TYPES } from "../views/issue-event.ts";
import { time } from "../views/view.ts";
import type { Issue, User } from "../world/records.ts";
import { accountFields, repositoryNamed, teamFields } from "./accounts.ts";
import { type Call, notFound, typedError } from "./call.ts";
import * as checks from "./checks.ts";
import { commentFields, reviewCommentFields, reviewFields, threadFields } from "./comments.ts";
import { commitFields, gitActorFields, pullCommitFields } from "./commits.ts";
import { arraySource, connection } from "./connection.ts";
import { deploymentFields, deploymentStatusFields } from "./deployments.ts";
import { issueFields } from "./issues.ts";
import { makeUpTheRest, typeOf } from "./made-up.ts";
import { mutationFields } from "./mutations.ts";
import { nodeById } from "./nodes.ts";
import { pullFields } from "./pulls.ts";
import * as refs from "./refs.ts";
import { labelFields, milestoneFields, repositoryFields } from "./repositories.ts";
import type { Fields } from "./resolvers.ts";
import { type Found, searchIssues, searchRepositories } from "./search.ts";
import { eventFields } from "./timeline.ts";

// GitHub: "You may not provide more than 100 node ids".
const MAX_IDS = 100;

function account(call: Call, login: string, types: readonly User["type"][]): User | null {
  const user = call.world.userByLogin(login);
  return user && types.includes(user.type) ? user : null;
}

const queryFields: Fields<undefined> = {
  id: () => "MDExOlF1ZXJ5UXVlcnk=",
  viewer: (_, __, call) => call.viewer,
  user: (_, { login }, call) => {
    const user = account(call, login, ["User", "Bot"]);
    if (user?.type !== "User") throw notFound(`a User with the login of '${login}'.`);
    return user;
  },
  organization: (_, { login }, call) => {
    const user = account(call, login, ["Organization"]);
    if (!user) throw notFound(`an Organization with the login of '${login}'.`);
    return user;
  },
  repositoryOwner: (_, { login }, call) => account(call, login, ["User", "Organization"]),
  repository: (_, { owner, name, followRenames }, call) => repositoryNamed(call, owner, name, followRenames ?? true),
  node: (_, { id }, call) => nodeById(call, id),
  nodes: (_, { ids }: { readonly ids: readonly string[] }, call) => {
    if (ids.length > MAX_IDS) {
      throw typedError(
        "ARGUMENT_LIMIT",
        `You may not provide more than ${MAX_IDS} node ids; you provided ${ids.length}.`,
      );
    }
    // One that is not found is null in its place, with an error of its own.
    return ids.map((id) => {
      try {
        return nodeById(call, id);
      } catch (error) {
        if (error instanceof Error) return error;
        throw error;
      }
    });
  },
  rateLimit: (_, __, call) => ({
    cost: call.cost.points,
    nodeCount: call.cost.nodeCount,
    limit: call.points.limit,
    remaining: call.points.remaining,
    used: call.points.used,
    resetAt: time(call.points.resetAt),
  }),
  search: (_, args, call, info) => {
    const found: Found<Issue | object> =
      args.type === "ISSUE"
        ? searchIssues(call, args.query)
        : args.type === "REPOSITORY"
          ? searchRepositories(call, args.query)
          : { rows: [], total: 0 };
    const ranks = new Map(found.rows.map((row, at) => [row, at + 1]));
    const source = arraySource(found.rows, { keyOf: (row) => ranks.get(row) ?? null });
    return {
      ...connection(call, info, args, source),
      issueCount: args.type === "ISSUE" ? found.total : 0,
      repositoryCount: args.type === "REPOSITORY" ? found.total : 0,
      userCount: 0,
      discussionCount: 0,
      codeCount: 0,
      wikiCount: 0,
    };
  },
};

const FIELDS: Readonly<Record<string, Fields<never>>> = {
  ...Object.fromEntries(EVENT_TYPES.map((type) => [type, eventFields])),
  Query: queryFields,
  Mutation: mutationFields,
  ...accountFields,
  Team: teamFields,
  Repository: repositoryFields,
  Issue: issueFields,
  PullRequest: pullFields,
  IssueComment: commentFields,
  PullRequestReview: reviewFields,
  PullRequestReviewComment: reviewCommentFields,
  PullRequestReviewThread: threadFields,
  Label: labelFields,
  Milestone: milestoneFields,
  Commit: commitFields,
  GitActor: gitActorFields,
  PullRequestCommit: pullCommitFields,
  StatusCheckRollup: checks.rollupFields,
  Status: checks.statusFields,
  StatusContext: checks.contextFields,
  CheckSuite: { ...checks.suiteFields, branch: refs.suiteBranch },
  WorkflowRun: checks.workflowRunFields,
  Workflow: checks.workflowFields,
  CheckRun: checks.runFields,
  CheckAnnotation: checks.annotationFields,
  App: checks.appFields,
  Ref: refs.refFields,
  Tag: refs.tagFields,
  Deployment: deploymentFields,
  DeploymentStatus: deploymentStatusFields,
  Release: refs.releaseFields,
  ReleaseAsset: refs.assetFields,
};

/**
 * The schema with its resolvers. It holds no state, and takes tens of milliseconds to build.
 * @param whole the service's whole schema, as SDL; what is not modelled there is made up
 */
export function buildSimulatorSchema(whole: string | null = null): GraphQLSchema {
  const text = whole ?? readFileSync(new URL("./schema.graphql", import.meta.url), "utf8");
  // Our own is validated by test/simulator/graphql-schema.test.ts.
  const schema = buildSchema(text, { assumeValid: true });
  // GitHub answers database ids beyond 32 bits although their type says Int.
  const wideInt = new GraphQLScalarType({ name: "Int", coerceOutputValue: (value) => value });
  for (const type of Object.values(schema.getTypeMap())) {
    if (isInterfaceType(type) || isUnionType(type)) type.resolveType = typeOf;
    if (!isObjectType(type) && !isInterfaceType(type)) continue;
    const fields = type.getFields();
    for (const [name, resolve] of Object.entries(FIELDS[type.name] ?? {})) {
      const field = fields[name];
      // Shared resolvers name more fields than some of the types have. Only the schema knows whether a resolver fits its
      // type.
      if (field) field.resolve = resolve as unknown as NonNullable<typeof field.resolve>;
    }
    const id = fields.databaseId;
    if (id) id.type = wideInt;
  }
  const time = schema.getType("DateTime");
  if (time instanceof GraphQLScalarType) {
    // Inputs are compared with seconds.
    time.coerceInputValue = (value) => {
      const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
      if (Number.isNaN(ms))
        throw new TypeError(`Not a time: ${JSON.stringify(value)}. Write it like 2026-01-31T12:00:00Z`);
      return Math.ceil(ms / 1_000);
    };
    time.coerceInputLiteral = (node) => time.coerceInputValue("value" in node ? node.value : undefined);
  }
  if (whole !== null) makeUpTheRest(schema);
  return schema;
}
