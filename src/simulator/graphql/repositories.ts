import { repositoryPage, time, timeOrNull } from "../views/view.ts";
import { type Kind, kindOf, seesCollaborators } from "../world/access.ts";
import { collaboratorsOf } from "../world/people.ts";
import type { Issue, Label, Milestone, Repository, RepositoryRole, User } from "../world/records.ts";
import {
  actor,
  type Call,
  forbidden,
  mayRead,
  notFound,
  pathOf,
  readable,
  requireEither,
  requireRead,
  seen,
  typedError,
  work,
} from "./call.ts";
import { arraySource, connection, type Key } from "./connection.ts";
import { repositoryDeploymentFields } from "./deployments.ts";
import { issuesSource, pullsSource } from "./issue-lists.ts";
import { repositoryCodeFields } from "./refs.ts";
import type { Fields } from "./resolvers.ts";

const PERMISSIONS: Readonly<Record<RepositoryRole, string>> = {
  admin: "ADMIN",
  maintain: "MAINTAIN",
  push: "WRITE",
  triage: "TRIAGE",
  pull: "READ",
};

const LICENSES: Readonly<Record<string, { readonly name: string; readonly spdxId: string }>> = {
  mit: { name: "MIT License", spdxId: "MIT" },
  "apache-2.0": { name: "Apache License 2.0", spdxId: "Apache-2.0" },
};

/**
 * The rows of `kinds` with this number in a repository. A caller who may not read one of the kinds does not learn
 * whether there is such a row. Gone ones are not found, transferred ones do not redirect.
 */
function numbered(call: Call, repository: Repository, number: number, kinds: readonly Kind[]) {
  const open = kinds.filter((kind) => mayRead(call, repository, kind));
  const issue = seen(call, call.world.issue(repository, number));
  const wanted = issue && kinds.includes(kindOf(issue)) ? issue : null;
  if (open.length === 0 || (wanted && !open.includes(kindOf(wanted)))) throw forbidden(call);
  if (wanted) work(call);
  return wanted;
}

export const repositoryFields: Fields<Repository> = {
  id: (row, _, call) => call.world.nodeId("Repository", row, undefined, call.view.nextIds),
  databaseId: (row) => row.id,
  nameWithOwner: (row, _, call) => call.world.fullName(row),
  owner: (row, _, call) => call.world.user(row.ownerId),
  url: (row, _, call) => repositoryPage(call.view, row),
  resourcePath: (row, _, call) => pathOf(call, repositoryPage(call.view, row)),
  sshUrl: (row, _, call) => `git@${new URL(call.view.htmlUrl).host}:${call.world.fullName(row)}.git`,
  descriptionHTML: (row) => `<div>${(row.description ?? "").replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</div>`,
  homepageUrl: (row) => row.homepage || null,
  mirrorUrl: () => null,
  visibility: (row) => row.visibility.toUpperCase(),
  isPrivate: (row) => row.visibility !== "public",
  isFork: (row) => row.fork,
  isArchived: (row) => row.archived,
  // The moment of archiving is the last change of an archived repository.
  archivedAt: (row) => (row.archived ? time(row.updatedAt) : null),
  isDisabled: (row) => row.disabled,
  isLocked: () => false,
  isEmpty: (row) => row.branches.size === 0,
  isMirror: () => false,
  isInOrganization: (row, _, call) => call.world.user(row.ownerId).type === "Organization",
  hasIssuesEnabled: (row) => row.hasIssues,
  hasProjectsEnabled: (row) => row.hasProjects,
  hasWikiEnabled: (row) => row.hasWiki,
  hasDiscussionsEnabled: (row) => row.hasDiscussions,
  autoMergeAllowed: (row) => row.allowAutoMerge,
  mergeCommitAllowed: (row) => row.allowMergeCommit,
  rebaseMergeAllowed: (row) => row.allowRebaseMerge,
  squashMergeAllowed: (row) => row.allowSquashMerge,
  forkingAllowed: (row) => row.allowForking,
  webCommitSignoffRequired: (row) => row.webCommitSignoffRequired,
  // A queue takes a rule, and no branch of this world is protected.
  mergeQueue: () => null,
  createdAt: (row) => time(row.createdAt),
  updatedAt: (row) => time(row.updatedAt),
  pushedAt: (row) => timeOrNull(row.pushedAt),
  ...repositoryCodeFields,
  ...repositoryDeploymentFields,
  primaryLanguage: (row) => (row.language === null ? null : { name: row.language }),
  licenseInfo: (row) =>
    row.licenseKey === null
      ? null
      : { key: row.licenseKey, name: row.licenseKey, spdxId: null, ...LICENSES[row.licenseKey] },
  stargazerCount: (row) => row.stargazers,
  forkCount: (row) => row.forks,
  diskUsage: (row) => row.size,
  parent: (row, _, call) => (row.parentId === null ? null : readable(call, call.world.repositories.get(row.parentId))),
  // Null "for authentication as a GitHub App", as the schema describes it.
  viewerPermission: (row, _, call) => (call.caller.isApp ? null : PERMISSIONS[call.caller.roleOf(row) ?? "pull"]),
  viewerCanAdminister: (row, _, call) => call.caller.roleOf(row) === "admin",
  watchers: (row, args, call, info) => ({
    ...connection(call, info, args, arraySource<User>([], { keyOf: (user) => user.id })),
    totalCount: row.subscribers,
  }),
  stargazers: (row, args, call, info) => ({
    ...connection(call, info, args, arraySource<User>([], { keyOf: (user) => user.id })),
    totalCount: row.stargazers,
  }),
  repositoryTopics: (row, args, call, info) => {
    const topics = row.topics.map((name, at) => {
      const url = `${call.view.htmlUrl}/topics/${name}`;
      return { id: at, topic: { name }, url, resourcePath: pathOf(call, url) };
    });
    return connection(call, info, args, arraySource(topics, { keyOf: () => null }));
  },
  // Null with an error, as recorded: electron/repos-using-electron#26.
  collaborators: (row, args, call, info) => {
    if (!seesCollaborators(call.world, call.caller.token, row))
      throw typedError("FORBIDDEN", "Must have push access to view repository collaborators.");
    const users = collaboratorsOf(call.world, row).map(({ user }) => user);
    return connection(call, info, args, arraySource(users, { keyOf: ({ login }) => login.toLowerCase() }));
  },
  assignableUsers: (row, args, call, info) => {
    requireEither(call, row);
    const users = collaboratorsOf(call.world, row).map(({ user }) => user);
    const wanted = args.query
      ? users.filter((user) => user.login.toLowerCase().includes(args.query.toLowerCase()))
      : users;
    return connection(call, info, args, arraySource(wanted, { keyOf: (user) => user.login.toLowerCase() }));
  },

  issue: (row, { number }, call) => {
    const issue = numbered(call, row, number, ["issues"]);
    if (!issue) throw notFound(`an Issue with the number of ${number}.`);
    return issue;
  },
  pullRequest: (row, { number }, call) => {
    const issue = numbered(call, row, number, ["pull_requests"]);
    if (!issue) throw notFound(`a PullRequest with the number of ${number}.`);
    return issue;
  },
  issueOrPullRequest: (row, { number }, call) => {
    const issue = numbered(call, row, number, ["issues", "pull_requests"]);
    if (!issue) throw notFound(`an issue or pull request with the number of ${number}.`);
    return issue;
  },
  label: (row, { name }, call) => {
    requireEither(call, row);
    return seen(call, call.world.labelByName(row, name));
  },
  milestone: (row, { number }, call) => {
    requireEither(call, row);
    return seen(call, call.world.milestoneByNumber(row, number));
  },
  issues: (row, args, call, info) => {
    requireRead(call, row, "issues");
    return connection(call, info, args, issuesSource(call, row, args));
  },
  pullRequests: (row, args, call, info) => {
    requireRead(call, row, "pull_requests");
    return connection(call, info, args, pullsSource(row, args));
  },
  labels: (row, args, call, info) => {
    requireEither(call, row);
    return connection(call, info, args, labelsSource([...row.rows.labels.values()], args));
  },
  milestones: (row, args, call, info) => {
    requireEither(call, row);
    const states: readonly string[] = args.states ?? [];
    let rows = [...row.rows.milestones.values()];
    if (states.length > 0) rows = rows.filter((milestone) => states.includes(milestone.state.toUpperCase()));
    if (args.query) rows = rows.filter((milestone) => milestone.title.toLowerCase().includes(args.query.toLowerCase()));
    const field: MilestoneOrderField = args.orderBy?.field ?? "NUMBER";
    const source = arraySource(rows, {
      keyOf: MILESTONE_KEYS[field],
      descending: args.orderBy?.direction === "DESC",
      timed: field !== "NUMBER",
    });
    return connection(call, info, args, source);
  },
};

type MilestoneOrderField = "DUE_DATE" | "CREATED_AT" | "UPDATED_AT" | "NUMBER";

const MILESTONE_KEYS: Readonly<Record<MilestoneOrderField, (milestone: Milestone) => Key>> = {
  DUE_DATE: (milestone) => milestone.dueOn,
  CREATED_AT: (milestone) => milestone.createdAt,
  UPDATED_AT: (milestone) => milestone.updatedAt,
  NUMBER: (milestone) => milestone.number,
};

/** The issues and pull requests that have a label or a milestone. */
function carriers<Row extends Label | Milestone>(carries: (row: Row, issue: Issue) => boolean): Fields<Row> {
  return {
    issues: (row, args, call, info) => {
      requireRead(call, row.repository, "issues");
      const source = issuesSource(call, row.repository, args, (issue) => carries(row, issue));
      return connection(call, info, args, source);
    },
    pullRequests: (row, args, call, info) => {
      requireRead(call, row.repository, "pull_requests");
      const source = pullsSource(row.repository, args, (issue) => carries(row, issue));
      return connection(call, info, args, source);
    },
  };
}

interface LabelsArguments {
  readonly orderBy?: { readonly field: "NAME" | "CREATED_AT"; readonly direction: "ASC" | "DESC" } | null;
  readonly query?: string | null;
}

export function labelsSource(labels: readonly Label[], args: LabelsArguments) {
  const query = args.query?.toLowerCase();
  const rows = query
    ? labels.filter((label) => `${label.name} ${label.description ?? ""}`.toLowerCase().includes(query))
    : labels;
  const byName = args.orderBy?.field === "NAME";
  return arraySource(rows, {
    keyOf: byName ? (label) => label.name.toLowerCase() : (label) => label.createdAt,
    descending: args.orderBy?.direction === "DESC",
    timed: !byName,
  });
}

export const labelFields: Fields<Label> = {
  id: (row, _, call) => call.world.nodeId("Label", row, row.repository.id, call.view.nextIds),
  createdAt: (row) => time(row.createdAt),
  updatedAt: (row) => time(row.updatedAt),
  url: (row, _, call) => `${repositoryPage(call.view, row.repository)}/labels/${encodeURIComponent(row.name)}`,
  resourcePath: (row, _, call) =>
    pathOf(call, `${repositoryPage(call.view, row.repository)}/labels/${encodeURIComponent(row.name)}`),
  ...carriers((row, issue) => issue.labelIds.includes(row.id)),
};

export const milestoneFields: Fields<Milestone> = {
  id: (row, _, call) => call.world.nodeId("Milestone", row, row.repository.id, call.view.nextIds),
  state: (row) => row.state.toUpperCase(),
  closed: (row) => row.state === "closed",
  closedAt: (row) => timeOrNull(row.closedAt),
  dueOn: (row) => timeOrNull(row.dueOn),
  createdAt: (row) => time(row.createdAt),
  updatedAt: (row) => time(row.updatedAt),
  creator: (row, _, call) => actor(call, row.creatorId),
  progressPercentage: (row) => {
    const total = row.openIssues + row.closedIssues;
    return total === 0 ? 0 : (row.closedIssues / total) * 100;
  },
  url: (row, _, call) => `${repositoryPage(call.view, row.repository)}/milestone/${row.number}`,
  resourcePath: (row, _, call) => pathOf(call, `${repositoryPage(call.view, row.repository)}/milestone/${row.number}`),
  ...carriers((row, issue) => issue.milestoneId === row.id),
};
