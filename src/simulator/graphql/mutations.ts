/** Changes asked for by GraphQL: through the world's own changes, so that rules, counters and webhooks are the same. */

import { createComment, deleteComment, editComment } from "../changes/comments.ts";
import { createIssue, deleteIssue, editIssue, type IssueEdit, transferIssue } from "../changes/issues.ts";
import { createPull, editPull, mergePull, type PullEdit, setDraft } from "../changes/pulls.ts";
import { resolveThread } from "../changes/threads.ts";
import { type Kind, kindOf } from "../world/access.ts";
import type { Comment, Issue, Label, Milestone, PullIssue, Repository, StateReason, User } from "../world/records.ts";
import { Refusal } from "../world/refusal.ts";
import { mayPush, mayTriage } from "../world/tokens.ts";
import { isPull } from "../world/world.ts";
import { type Call, forbidden, typedError } from "./call.ts";
import { encodeCursor } from "./cursor.ts";
import { nodeOfKind, threadById } from "./nodes.ts";
import type { Fields } from "./resolvers.ts";

/** What every input may carry; it comes back in the payload. */
interface Input {
  readonly clientMutationId?: string | null;
}

/** Makes a resolver: refusals of the world become UNPROCESSABLE errors with REST's text. */
function mutation<In extends Input>(run: (call: Call, input: In) => object): Fields<undefined>[string] {
  return (_, args: { readonly input: In }, call) => {
    try {
      return { clientMutationId: args.input.clientMutationId ?? null, ...run(call, args.input) };
    } catch (error) {
      if (error instanceof Refusal) throw typedError("UNPROCESSABLE", textOf(error));
      throw error;
    }
  };
}

function textOf(refusal: Refusal): string {
  if (!Array.isArray(refusal.errors)) return refusal.message;
  return refusal.errors
    .map((error) =>
      typeof error === "string"
        ? error
        : (error.message ?? `${error.field ?? error.resource} ${error.code.replace("_", " ")}`),
    )
    .join(", ");
}

function writable(call: Call, repository: Repository, permission: Kind | "contents"): Repository {
  if (!call.caller.may(repository, [{ permission, level: "write" }])) throw forbidden(call);
  if (repository.archived) throw typedError("UNPROCESSABLE", "Repository was archived so is read-only.");
  return repository;
}

function requirePush(call: Call, repository: Repository, permission: Kind | "contents"): void {
  if (!mayPush(call.caller.roleOf(writable(call, repository, permission)))) throw forbidden(call);
}

function requireTriage(call: Call, repository: Repository, kind: Kind): void {
  if (!mayTriage(call.caller.roleOf(writable(call, repository, kind)))) throw forbidden(call);
}

/** Authors may change what they wrote on or as an issue; others need to be able to push. */
function requireAuthorship(call: Call, issue: Issue, authorId: number | null): void {
  const repository = writable(call, issue.repository, kindOf(issue));
  if (authorId !== call.viewer.id && !mayPush(call.caller.roleOf(repository))) throw forbidden(call);
}

function labelIds(call: Call, ids: readonly string[], repository: Repository): number[] {
  return ids.map((id) => inRepository(nodeOfKind<Label>(call, id, "Label"), repository, id).id);
}

function milestoneId(call: Call, id: string, repository: Repository): number {
  return inRepository(nodeOfKind<Milestone>(call, id, "Milestone"), repository, id).id;
}

function inRepository<Row extends Label | Milestone>(row: Row, repository: Repository, id: string): Row {
  if (row.repository !== repository)
    throw typedError("NOT_FOUND", `Could not resolve to a node with the global id of '${id}'`);
  return row;
}

function userIds(call: Call, ids: readonly string[]): number[] {
  return ids.map((id) => nodeOfKind<User>(call, id, "User", "Bot").id);
}

function issueById(call: Call, id: string): Issue {
  return nodeOfKind<Issue>(call, id, "Issue");
}

function pullById(call: Call, id: string): PullIssue {
  return nodeOfKind<PullIssue>(call, id, "PullRequest");
}

function either(call: Call, id: string): Issue {
  return nodeOfKind<Issue>(call, id, "Issue", "PullRequest");
}

interface SetsInput extends Input {
  readonly title?: string | null;
  readonly body?: string | null;
  readonly labelIds?: readonly string[] | null;
  readonly assigneeIds?: readonly string[] | null;
  readonly milestoneId?: string | null;
}

/** Absent and null leave a field as it is, but null clears the milestone. */
function editOf(call: Call, issue: Issue, input: SetsInput): IssueEdit {
  const { repository } = issue;
  const edit: { -readonly [Name in keyof IssueEdit]: IssueEdit[Name] } = {};
  if (input.title != null) edit.title = input.title;
  if (input.body != null) edit.body = input.body;
  if (input.labelIds) edit.labelIds = labelIds(call, input.labelIds, repository);
  if (input.assigneeIds) edit.assigneeIds = userIds(call, input.assigneeIds);
  if (input.milestoneId !== undefined)
    edit.milestoneId = input.milestoneId === null ? null : milestoneId(call, input.milestoneId, repository);
  return edit;
}

function close(call: Call, issue: Issue, state: "open" | "closed", stateReason?: StateReason): void {
  requireAuthorship(call, issue, issue.authorId);
  const by = call.viewer.id;
  if (isPull(issue)) editPull(call.world, by, issue, { state });
  else editIssue(call.world, by, issue, { state, ...(stateReason ? { stateReason } : {}) });
}

export const mutationFields: Fields<undefined> = {
  createIssue: mutation<SetsInput & { readonly repositoryId: string; readonly title: string }>((call, input) => {
    const repository = writable(call, nodeOfKind<Repository>(call, input.repositoryId, "Repository"), "issues");
    const sets = input.labelIds?.length || input.assigneeIds?.length || input.milestoneId;
    if (sets) requireTriage(call, repository, "issues");
    const issue = createIssue(call.world, call.viewer.id, {
      repository,
      title: input.title,
      body: input.body || null,
      labelIds: labelIds(call, input.labelIds ?? [], repository),
      assigneeIds: userIds(call, input.assigneeIds ?? []),
      milestoneId: input.milestoneId ? milestoneId(call, input.milestoneId, repository) : null,
    });
    return { issue };
  }),
  updateIssue: mutation<SetsInput & { readonly id: string; readonly state?: "OPEN" | "CLOSED" | null }>(
    (call, input) => {
      const issue = issueById(call, input.id);
      requireAuthorship(call, issue, issue.authorId);
      const state = input.state ? { state: input.state === "OPEN" ? ("open" as const) : ("closed" as const) } : {};
      editIssue(call.world, call.viewer.id, issue, { ...editOf(call, issue, input), ...state });
      return { issue, actor: call.viewer };
    },
  ),
  closeIssue: mutation<Input & { readonly issueId: string; readonly stateReason?: string | null }>((call, input) => {
    const issue = issueById(call, input.issueId);
    // The schema's enum has the service's reasons in capitals.
    close(call, issue, "closed", (input.stateReason ?? "COMPLETED").toLowerCase() as StateReason);
    return { issue };
  }),
  reopenIssue: mutation<Input & { readonly issueId: string }>((call, input) => {
    const issue = issueById(call, input.issueId);
    close(call, issue, "open");
    return { issue };
  }),
  deleteIssue: mutation<Input & { readonly issueId: string }>((call, input) => {
    const issue = issueById(call, input.issueId);
    if (call.caller.roleOf(writable(call, issue.repository, "issues")) !== "admin") throw forbidden(call);
    deleteIssue(call.world, call.viewer.id, issue);
    return { repository: issue.repository };
  }),
  transferIssue: mutation<Input & { readonly issueId: string; readonly repositoryId: string }>((call, input) => {
    const issue = issueById(call, input.issueId);
    const target = nodeOfKind<Repository>(call, input.repositoryId, "Repository");
    requirePush(call, issue.repository, "issues");
    requirePush(call, target, "issues");
    return { issue: transferIssue(call.world, call.viewer.id, issue, target) };
  }),
  addComment: mutation<Input & { readonly subjectId: string; readonly body: string }>((call, input) => {
    const subject = either(call, input.subjectId);
    writable(call, subject.repository, kindOf(subject));
    if (subject.locked && !mayPush(call.caller.roleOf(subject.repository))) throw forbidden(call);
    const comment = createComment(call.world, call.viewer.id, subject, input.body);
    return { subject, commentEdge: { cursor: encodeCursor(null, comment.id), node: comment } };
  }),
  updateIssueComment: mutation<Input & { readonly id: string; readonly body: string }>((call, input) => {
    const comment = nodeOfKind<Comment>(call, input.id, "IssueComment");
    requireAuthorship(call, comment.issue, comment.authorId);
    editComment(call.world, call.viewer.id, comment, input.body);
    return { issueComment: comment };
  }),
  deleteIssueComment: mutation<Input & { readonly id: string }>((call, input) => {
    const comment = nodeOfKind<Comment>(call, input.id, "IssueComment");
    requireAuthorship(call, comment.issue, comment.authorId);
    deleteComment(call.world, call.viewer.id, comment);
    return {};
  }),
  createPullRequest: mutation<
    Input & {
      readonly repositoryId: string;
      readonly headRepositoryId?: string | null;
      readonly baseRefName: string;
      readonly headRefName: string;
      readonly title: string;
      readonly body?: string | null;
      readonly draft?: boolean | null;
      readonly maintainerCanModify?: boolean | null;
    }
  >((call, input) => {
    const repository = writable(call, nodeOfKind<Repository>(call, input.repositoryId, "Repository"), "pull_requests");
    // `owner:branch` names a fork by its owner.
    const [headRef = "", headOwner] = input.headRefName.split(":").reverse();
    const forkOf = (login: string) => {
      const owner = call.world.userByLogin(login)?.id;
      return [...call.world.repositories.values()].find(
        (one) => one.ownerId === owner && (one === repository || one.parentId === repository.id),
      );
    };
    const named = input.headRepositoryId
      ? nodeOfKind<Repository>(call, input.headRepositoryId, "Repository")
      : undefined;
    const headRepository = named ?? (headOwner === undefined ? repository : forkOf(headOwner));
    if (!headRepository) throw typedError("UNPROCESSABLE", "Head repository can't be blank");
    const pullRequest = createPull(call.world, call.viewer.id, {
      repository,
      headRepository,
      headRef,
      baseRef: input.baseRefName,
      title: input.title,
      body: input.body || null,
      draft: input.draft ?? false,
      maintainerCanModify: input.maintainerCanModify ?? true,
    });
    return { pullRequest };
  }),
  updatePullRequest: mutation<
    SetsInput & {
      readonly pullRequestId: string;
      readonly state?: "OPEN" | "CLOSED" | null;
      readonly baseRefName?: string | null;
      readonly maintainerCanModify?: boolean | null;
    }
  >((call, input) => {
    const pullRequest = pullById(call, input.pullRequestId);
    requireAuthorship(call, pullRequest, pullRequest.authorId);
    const edit: PullEdit = {
      ...(input.baseRefName != null ? { baseRef: input.baseRefName } : {}),
      ...(input.maintainerCanModify != null ? { maintainerCanModify: input.maintainerCanModify } : {}),
    };
    const state = input.state ? { state: input.state === "OPEN" ? ("open" as const) : ("closed" as const) } : {};
    const rest = editOf(call, pullRequest, input);
    editPull(call.world, call.viewer.id, pullRequest, edit);
    editIssue(call.world, call.viewer.id, pullRequest, { ...rest, ...state });
    return { pullRequest, actor: call.viewer };
  }),
  closePullRequest: mutation<Input & { readonly pullRequestId: string }>((call, input) => {
    const pullRequest = pullById(call, input.pullRequestId);
    close(call, pullRequest, "closed");
    return { pullRequest };
  }),
  reopenPullRequest: mutation<Input & { readonly pullRequestId: string }>((call, input) => {
    const pullRequest = pullById(call, input.pullRequestId);
    close(call, pullRequest, "open");
    return { pullRequest };
  }),
  mergePullRequest: mutation<Input & { readonly pullRequestId: string; readonly expectedHeadOid?: string | null }>(
    (call, input) => {
      const pullRequest = pullById(call, input.pullRequestId);
      requirePush(call, pullRequest.repository, "contents");
      if (input.expectedHeadOid != null && input.expectedHeadOid !== pullRequest.pull.head.sha) {
        throw typedError("UNPROCESSABLE", "Head sha didn't match expected head sha");
      }
      mergePull(call.world, call.viewer.id, pullRequest);
      return { pullRequest, actor: call.viewer };
    },
  ),
  resolveReviewThread: mutation<Input & { readonly threadId: string }>((call, input) =>
    resolve(call, input.threadId, true),
  ),
  unresolveReviewThread: mutation<Input & { readonly threadId: string }>((call, input) =>
    resolve(call, input.threadId, false),
  ),
  convertPullRequestToDraft: mutation<Input & { readonly pullRequestId: string }>((call, input) =>
    draft(call, input.pullRequestId, true),
  ),
  markPullRequestReadyForReview: mutation<Input & { readonly pullRequestId: string }>((call, input) =>
    draft(call, input.pullRequestId, false),
  ),
  addLabelsToLabelable: mutation<Input & { readonly labelableId: string; readonly labelIds: readonly string[] }>(
    (call, input) => {
      const labelable = either(call, input.labelableId);
      requireTriage(call, labelable.repository, kindOf(labelable));
      const added = labelIds(call, input.labelIds, labelable.repository);
      editIssue(call.world, call.viewer.id, labelable, { labelIds: [...new Set([...labelable.labelIds, ...added])] });
      return { labelable };
    },
  ),
  removeLabelsFromLabelable: mutation<Input & { readonly labelableId: string; readonly labelIds: readonly string[] }>(
    (call, input) => {
      const labelable = either(call, input.labelableId);
      requireTriage(call, labelable.repository, kindOf(labelable));
      const removed = labelIds(call, input.labelIds, labelable.repository);
      editIssue(call.world, call.viewer.id, labelable, {
        labelIds: labelable.labelIds.filter((id) => !removed.includes(id)),
      });
      return { labelable };
    },
  ),
  addAssigneesToAssignable: mutation<
    Input & { readonly assignableId: string; readonly assigneeIds: readonly string[] }
  >((call, input) => {
    const assignable = either(call, input.assignableId);
    requireTriage(call, assignable.repository, kindOf(assignable));
    const added = userIds(call, input.assigneeIds);
    editIssue(call.world, call.viewer.id, assignable, {
      assigneeIds: [...new Set([...assignable.assigneeIds, ...added])],
    });
    return { assignable };
  }),
  removeAssigneesFromAssignable: mutation<
    Input & { readonly assignableId: string; readonly assigneeIds: readonly string[] }
  >((call, input) => {
    const assignable = either(call, input.assignableId);
    requireTriage(call, assignable.repository, kindOf(assignable));
    const removed = userIds(call, input.assigneeIds);
    editIssue(call.world, call.viewer.id, assignable, {
      assigneeIds: assignable.assigneeIds.filter((id) => !removed.includes(id)),
    });
    return { assignable };
  }),
};

/** For those who may push, and for the author of the pull request. */
function resolve(call: Call, id: string, resolved: boolean): object {
  const thread = threadById(call, id);
  requireAuthorship(call, thread.issue, thread.issue.authorId);
  resolveThread(call.world, call.viewer.id, thread.issue, thread.id, resolved);
  return { thread };
}

function draft(call: Call, id: string, value: boolean): object {
  const pullRequest = pullById(call, id);
  requireAuthorship(call, pullRequest, pullRequest.authorId);
  setDraft(call.world, call.viewer.id, pullRequest, value);
  return { pullRequest };
}
