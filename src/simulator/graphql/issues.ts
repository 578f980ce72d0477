/** Fields that issues, pull requests, comments and reviews have alike, and the issue's own. */

import { association, time, timeOrNull } from "../views/view.ts";
import { parentOf, subIssuesSummary } from "../world/issue-links.ts";
import type { Association, Issue, Reactions, Repository, Seconds } from "../world/records.ts";
import { actor, issuePage, pathOf, seen } from "./call.ts";
import { arraySource, connection } from "./connection.ts";
import { issueState } from "./issue-lists.ts";
import { labelsSource } from "./repositories.ts";
import type { Fields } from "./resolvers.ts";
import { timelineItems } from "./timeline.ts";

/** What every text that a person wrote has. */
interface Written {
  readonly id: number;
  readonly authorId: number | null;
  readonly body: string | null;
  readonly association: Association | null;
  readonly createdAt: Seconds;
  readonly updatedAt: Seconds;
  readonly reactions?: Reactions | null;
}

/** `repositoryOf` and `editedAt` differ by kind of text. */
export function writtenFields<Row extends Written>(
  repositoryOf: (row: Row) => Repository,
  editedAt: (row: Row) => Seconds | null,
): Fields<Row> {
  return {
    databaseId: (row) => row.id,
    fullDatabaseId: (row) => String(row.id),
    author: (row, _, call) => actor(call, row.authorId),
    authorAssociation: (row, _, call) => association(call.world, repositoryOf(row), row.authorId, row.association),
    body: (row) => row.body ?? "",
    bodyText: (row) => (row.body ?? "").replaceAll(/[*_`#>]/g, ""),
    bodyHTML: (row) => html(row.body ?? ""),
    createdAt: (row) => time(row.createdAt),
    publishedAt: (row) => time(row.createdAt),
    updatedAt: (row) => time(row.updatedAt),
    createdViaEmail: () => false,
    editor: (row, _, call) => (editedAt(row) === null ? null : actor(call, row.authorId)),
    lastEditedAt: (row) => timeOrNull(editedAt(row)),
    includesCreatedEdit: (row) => editedAt(row) !== null,
    isMinimized: () => false,
    minimizedReason: () => null,
    repository: (row) => repositoryOf(row),
    viewerDidAuthor: (row, _, call) => row.authorId === call.viewer.id,
    reactionGroups: (row) => reactionGroups(row.reactions ?? null),
    reactions: (row, args) => ({ totalCount: total(row.reactions ?? null, args.content), viewerHasReacted: false }),
  };
}

function html(text: string): string {
  if (text === "") return "";
  return `<p dir="auto">${text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")}</p>`;
}

const REACTIONS = {
  THUMBS_UP: "+1",
  THUMBS_DOWN: "-1",
  LAUGH: "laugh",
  HOORAY: "hooray",
  CONFUSED: "confused",
  HEART: "heart",
  ROCKET: "rocket",
  EYES: "eyes",
} as const;

function reactionGroups(reactions: Reactions | null) {
  return Object.entries(REACTIONS).map(([content, key]) => {
    const totalCount = reactions?.[key] ?? 0;
    return { content, users: { totalCount }, reactors: { totalCount } };
  });
}

function total(reactions: Reactions | null, content: keyof typeof REACTIONS | null | undefined): number {
  if (content) return reactions?.[REACTIONS[content]] ?? 0;
  return Object.values(reactions ?? {}).reduce((sum, count) => sum + count, 0);
}

/** What issues and pull requests have alike. */
export const sharedFields: Fields<Issue> = {
  ...writtenFields<Issue>(
    (issue) => issue.repository,
    (issue) => issue.editedAt,
  ),
  url: (issue, _, call) => issuePage(call, issue),
  resourcePath: (issue, _, call) => pathOf(call, issuePage(call, issue)),
  titleHTML: (issue) => issue.title.replaceAll("&", "&amp;").replaceAll("<", "&lt;"),
  closed: (issue) => issue.state === "closed",
  closedAt: (issue) => timeOrNull(issue.closedAt),
  activeLockReason: (issue) => issue.lockReason?.replaceAll(/[- ]/g, "_").toUpperCase() ?? null,
  milestone: (issue, _, call) =>
    issue.milestoneId === null ? null : seen(call, call.world.milestones.get(issue.milestoneId)),
  labels: (issue, args, call, info) => {
    const labels = issue.labelIds.flatMap((id) => call.world.labels.get(id) ?? []);
    return connection(call, info, args, labelsSource(labels, args));
  },
  assignees: (issue, args, call, info) => {
    const users = issue.assigneeIds.flatMap((id) => actor(call, id) ?? []);
    const places = new Map(users.map((user, at) => [user, at]));
    return connection(call, info, args, arraySource(users, { keyOf: (user) => places.get(user) ?? null }));
  },
  comments: (issue, args, call, info) => {
    const byUpdate = args.orderBy?.field === "UPDATED_AT";
    const source = arraySource(issue.thread, {
      keyOf: byUpdate ? (comment) => comment.updatedAt : () => null,
      descending: args.orderBy?.direction === "DESC",
      timed: byUpdate,
    });
    const page = connection(call, info, args, source);
    return { ...page, totalCount: () => page.totalCount() + issue.commentsBeyond };
  },
};

export const issueFields: Fields<Issue> = {
  ...sharedFields,
  id: (issue, _, call) => call.world.nodeId("Issue", issue, issue.repository.id, call.view.nextIds),
  state: issueState,
  isPinned: (issue) => issue.pinned,
  timelineItems,
  parent: (issue, _, call) => seen(call, parentOf(call.world, issue) ?? undefined),
  subIssuesSummary: (issue, _, call) => subIssuesSummary(call.world, issue),
  stateReason: (issue, { enableDuplicate }) => {
    if (issue.stateReason === "duplicate" && !enableDuplicate) return "NOT_PLANNED";
    return issue.stateReason?.toUpperCase() ?? null;
  },
};
