import { createComment, deleteComment, editComment } from "../changes/comments.ts";
import { createIssue, deleteIssue, editIssue, lockIssue, transferIssue, unlockIssue } from "../changes/issues.ts";
import * as faker from "../world/faker.ts";
import type { Act } from "./act.ts";

/** What people do with issues. Most of it they do with pull requests as well. */
export const ISSUE_ACTS = {
  open: (stage, repository, by) => {
    const { world, random } = stage;
    return createIssue(world, by, {
      repository,
      title: faker.title(random),
      body: random.chance(0.1) ? null : stage.body(repository),
      labelIds: random.chance(0.3) ? stage.labelIds(repository) : [],
    });
  },

  edit: (stage, repository, by) => {
    const { world, random } = stage;
    const issue = stage.issue(repository);
    if (!issue) return undefined;
    const edited = random.chance(0.4) ? { title: faker.title(random) } : { body: stage.body(repository) };
    return editIssue(world, by, issue, edited);
  },

  label: (stage, repository, by) => {
    const issue = stage.issue(repository);
    const [labelId] = stage.labelIds(repository);
    if (!issue || labelId === undefined) return undefined;
    const { labelIds } = issue;
    return editIssue(stage.world, by, issue, {
      labelIds: labelIds.includes(labelId) ? labelIds.filter((id) => id !== labelId) : [...labelIds, labelId],
    });
  },

  assign: (stage, repository, by) => {
    const issue = stage.issue(repository);
    const assignee = stage.person();
    if (!issue || !assignee) return undefined;
    return editIssue(stage.world, by, issue, {
      assigneeIds: issue.assigneeIds.length > 2 ? [] : [...new Set([...issue.assigneeIds, assignee.id])],
    });
  },

  milestone: (stage, repository, by) => {
    const { world, random } = stage;
    const issue = stage.issue(repository);
    const ids = [...repository.rows.milestones.keys()];
    if (!issue) return undefined;
    const milestoneId = ids.length === 0 || random.chance(0.3) ? null : random.pick(ids);
    return editIssue(world, by, issue, { milestoneId });
  },

  comment: (stage, repository, by) => {
    const issue = stage.issue(repository);
    return issue && createComment(stage.world, by, issue, stage.reply(repository)).issue;
  },

  editComment: (stage, repository, by) => {
    const issue = stage.issue(repository, ({ thread }) => thread.length > 0);
    if (issue) editComment(stage.world, by, stage.random.pick(issue.thread), stage.reply(repository));
    return issue;
  },

  deleteComment: (stage, repository, by) => {
    const issue = stage.issue(repository, ({ thread }) => thread.length > 0);
    if (issue) deleteComment(stage.world, by, stage.random.pick(issue.thread));
    return issue;
  },

  close: (stage, repository, by) => {
    const issue = stage.issue(repository, ({ state }) => state === "open");
    if (!issue) return undefined;
    const stateReason = stage.random.pick(["completed", "completed", "not_planned"] as const);
    return editIssue(stage.world, by, issue, { state: "closed", stateReason });
  },

  reopen: (stage, repository, by) => {
    const issue = stage.issue(repository, ({ state, pull }) => state === "closed" && pull?.mergedAt == null);
    return issue && editIssue(stage.world, by, issue, { state: "open" });
  },

  lock: (stage, repository, by) => {
    const issue = stage.issue(repository);
    if (!issue) return undefined;
    if (issue.locked) unlockIssue(stage.world, by, issue);
    else lockIssue(stage.world, by, issue, stage.random.pick(faker.LOCK_REASONS));
    return issue;
  },

  deleteIssue: (stage, repository, by) => {
    const issue = stage.issue(repository, ({ pull }) => !pull);
    if (issue) deleteIssue(stage.world, by, issue);
    return issue;
  },

  transferIssue: (stage, repository, by) => {
    const issue = stage.issue(repository, ({ pull }) => !pull);
    const target = stage.repository();
    return issue && target && target !== repository ? transferIssue(stage.world, by, issue, target) : undefined;
  },
} satisfies Record<string, Act>;
