import type { Above } from "../../../mirror/read/issues.ts";
import { issueSource } from "../../../mirror/read/issues.ts";
import type { PageSource } from "../../../mirror/read/pages.ts";
import { pullSource } from "../../../mirror/read/pulls.ts";
import type { Node } from "../call/node.ts";
import { type PageArguments, storedConnection } from "./connection.ts";
import {
  account,
  nodeId,
  notMirrored,
  ofRepository,
  pathnameOf,
  type Resolver,
  resourcePath,
  rest,
  type TypeResolvers,
  upper,
} from "./fields.ts";

/** The issues and pull requests that have a label or a milestone. */
function listedUnder(above: "label" | "milestone"): TypeResolvers {
  const list =
    <Args extends object>(kind: "Issue" | "PullRequest", source: (args: Args, above: Above) => PageSource): Resolver =>
    (node, args: Args & PageArguments, call, info) =>
      call.withRight({ repositoryId: node.repositoryId, right: kind === "Issue" ? "issues" : "pulls" }, () =>
        storedConnection(call, info, args, {
          kind,
          source: source(args, above),
          parent: { r: node.repositoryId, n: Number(node.rest.id) },
        }),
      );
  return { issues: list("Issue", issueSource), pullRequests: list("PullRequest", pullSource) };
}

export const label: TypeResolvers = {
  ...ofRepository,
  ...listedUnder("label"),
  id: nodeId,
  name: rest("name"),
  color: rest("color"),
  description: rest("description"),
  isDefault: rest("default"),
  createdAt: notMirrored,
  updatedAt: notMirrored,
  url: async (node, _args, call) => labelPage(node, await call.requireRepositoryById(node.repositoryId)),
  resourcePath: async (node, _args, call) =>
    pathnameOf(labelPage(node, await call.requireRepositoryById(node.repositoryId))),
};

function labelPage(node: Node, { rest: { html_url } }: Node): string {
  return `${html_url}/labels/${encodeURIComponent(String(node.rest.name))}`;
}

export const milestone: TypeResolvers = {
  ...ofRepository,
  ...listedUnder("milestone"),
  progressPercentage: ({ rest: { open_issues, closed_issues } }) => {
    const [open, closed] = [Number(open_issues), Number(closed_issues)];
    return closed > 0 ? (closed / (open + closed)) * 100 : 0;
  },
  id: nodeId,
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
  resourcePath,
};
