import { objectOf } from "../../../json.ts";
import { issueSource } from "../../../mirror/read/issues.ts";
import { labelSource } from "../../../mirror/read/labels.ts";
import { milestoneSource } from "../../../mirror/read/milestones.ts";
import { findIssueDocuments, type PageSource } from "../../../mirror/read/pages.ts";
import { pullSource } from "../../../mirror/read/pulls.ts";
import type { Right } from "../../../mirror/read/repositories.ts";
import type { GraphqlCall } from "../call.ts";
import { typedError } from "../errors.ts";
import type { Node } from "../node.ts";
import { type KeptRows, type PageArguments, storedConnection } from "./connection.ts";
import {
  account,
  databaseId,
  enumValue,
  given,
  type Resolver,
  resourcePath,
  rest,
  type TypeResolvers,
} from "./fields.ts";
import { repositoryRefs } from "./refs.ts";
import { repositoryReleases } from "./releases.ts";
import { repositoryDetails } from "./repository-details.ts";

/** The field `repository` of a query. @throws GraphQLError NOT_FOUND, as `requireRepository` */
export function namedRepository(
  _root: unknown,
  { owner, name, followRenames }: { owner: string; name: string; followRenames?: boolean | null },
  call: GraphqlCall,
): Promise<Node> {
  return call.requireRepository(owner, name, followRenames ?? true);
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
    documents: (numbers, request) => findIssueDocuments(call.db, repositoryId, numbers, request),
  };
}

export const repository: TypeResolvers = {
  ...repositoryDetails,
  ...repositoryReleases,
  ...repositoryRefs,
  id: rest("node_id"),
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
