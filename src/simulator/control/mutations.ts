/** Every change of the world by name, with JSON arguments: for tests and demonstrations in other processes. */
import { createComment, deleteComment, editComment } from "../changes/comments.ts";
import { addIssueEvent } from "../changes/issue-events.ts";
import {
  createIssue,
  deleteIssue,
  editIssue,
  lockIssue,
  pinIssue,
  transferIssue,
  unlockIssue,
} from "../changes/issues.ts";
import { createLabel, deleteLabel, editLabel } from "../changes/labels.ts";
import { createMilestone, deleteMilestone, editMilestone } from "../changes/milestones.ts";
import { setCollaborator } from "../changes/people.ts";
import * as pulls from "../changes/pulls.ts";
import * as repositories from "../changes/repositories.ts";
import * as reviews from "../changes/reviews.ts";
import { createUser, deleteUser, editUser, renameUser } from "../changes/users.ts";
import { commentView, reviewCommentView, reviewView } from "../views/comment.ts";
import { issueView, labelView, milestoneView } from "../views/issue.ts";
import { issueEventView } from "../views/issue-event.ts";
import { fullPull } from "../views/pull.ts";
import { fullRepository } from "../views/repository.ts";
import { publicUser } from "../views/user.ts";
import type { View } from "../views/view.ts";
import type { Issue } from "../world/records.ts";
import { isPull, type World } from "../world/world.ts";
import { CODE_MUTATIONS } from "./code-mutations.ts";
import { Arguments } from "./mutation-arguments.ts";

type Mutation = (world: World, by: number, given: Arguments, view: View) => unknown;

const issueAnswer = (view: View, issue: Issue) => (isPull(issue) ? fullPull(view, issue) : issueView(view, issue));

const LOCK_REASONS = ["off-topic", "too heated", "resolved", "spam"] as const;

const MUTATIONS: Readonly<Record<string, Mutation>> = {
  createUser: (world, _by, given, view) =>
    publicUser(
      view,
      createUser(world, {
        login: given.text("login"),
        type: given.choice("type", ["User", "Organization", "Bot"] as const) ?? "User",
      }),
    ),
  renameUser: (world, _by, given, view) => {
    const user = given.user("login");
    renameUser(world, user, given.text("to"));
    return publicUser(view, user);
  },
  editUser: (world, _by, given, view) => {
    const user = given.user("login");
    editUser(world, user, given.picked("name", "company"));
    return publicUser(view, user);
  },
  deleteUser: (world, by, given) => deleteUser(world, by, given.user("login")),

  createRepository: (world, by, given, view) => {
    const owner = given.user("owner");
    const visibility = given.choice("visibility", ["public", "private", "internal"] as const) ?? "public";
    return fullRepository(
      view,
      repositories.createRepository(world, by, { ownerId: owner.id, name: given.text("name"), visibility }),
    );
  },
  forkRepository: (world, by, given, view) => {
    const parent = given.repository();
    const fork = {
      ownerId: given.user("owner").id,
      name: parent.name,
      fork: true,
      parentId: parent.id,
      branches: new Map(parent.branches),
    };
    return fullRepository(view, repositories.createRepository(world, by, fork));
  },
  editRepository: (world, by, given, view) => {
    const repository = given.repository();
    const edit = given.picked(
      "description",
      "homepage",
      "defaultBranch",
      "topics",
      "hasIssues",
      "hasPullRequests",
      "hasProjects",
      "hasWiki",
    );
    repositories.editRepository(world, by, repository, edit);
    return fullRepository(view, repository);
  },
  renameRepository: (world, by, given, view) => {
    const repository = given.repository();
    repositories.renameRepository(world, by, repository, given.text("name"));
    return fullRepository(view, repository);
  },
  transferRepository: (world, by, given, view) => {
    const repository = given.repository();
    repositories.transferRepository(world, by, repository, given.user("to"));
    return fullRepository(view, repository);
  },
  archiveRepository: (world, by, given) => repositories.archiveRepository(world, by, given.repository(), true),
  unarchiveRepository: (world, by, given) => repositories.archiveRepository(world, by, given.repository(), false),
  setVisibility: (world, by, given) => {
    const visibility = given.choice("visibility", ["public", "private", "internal"]);
    if (!visibility) throw new Error("visibility is missing");
    return repositories.setVisibility(world, by, given.repository(), visibility);
  },
  privatizeRepository: (world, by, given) => repositories.setVisibility(world, by, given.repository(), "private"),
  publicizeRepository: (world, by, given) => repositories.setVisibility(world, by, given.repository(), "public"),
  /** No reason: access is given back. */
  blockRepository: (_world, _by, given) => {
    given.repository().blocked = given.choice("reason", ["dmca", "tos"] as const) ?? null;
  },
  deleteRepository: (world, by, given) => repositories.deleteRepository(world, by, given.repository()),
  addCollaborator: (world, by, given) => {
    const role = given.choice("role", ["admin", "maintain", "push", "triage", "pull"]) ?? "push";
    setCollaborator(world, by, given.repository(), given.user("login").id, role);
  },
  addMember: (world, _by, given) => {
    const organization = given.user("organization");
    organization.memberIds = [...new Set([...organization.memberIds, given.user("login").id])];
    organization.updatedAt = world.now();
  },
  pushBranch: (world, by, given) => ({
    sha: pulls.pushBranch(world, by, given.repository(), given.text("ref"), given.optional("sha")),
  }),

  createIssue: (world, by, given, view) => {
    const input = {
      repository: given.repository(),
      title: given.text("title"),
      ...given.picked("body"),
      ...given.sets(by),
    };
    return issueView(view, createIssue(world, by, input));
  },
  editIssue: (world, by, given, view) => {
    const issue = given.issue();
    return issueAnswer(
      view,
      editIssue(world, by, issue, { ...given.picked("title", "body", "state", "stateReason"), ...given.sets(by) }),
    );
  },
  deleteIssue: (world, by, given) => deleteIssue(world, by, given.issue()),
  transferIssue: (world, by, given, view) =>
    issueView(view, transferIssue(world, by, given.issue(), given.repository("to"))),
  lockIssue: (world, by, given) => lockIssue(world, by, given.issue(), given.choice("reason", LOCK_REASONS) ?? null),
  unlockIssue: (world, by, given) => unlockIssue(world, by, given.issue()),
  pinIssue: (world, by, given) => pinIssue(world, by, given.issue(), true),
  unpinIssue: (world, by, given) => pinIssue(world, by, given.issue(), false),

  /** A head branch that is not there yet is pushed first. */
  createPull: (world, by, given, view) => {
    const repository = given.repository();
    const headRepository = given.has("headRepository") ? given.repository("headRepository") : repository;
    const headRef = given.text("head");
    if (!headRepository.branches.has(headRef)) pulls.pushBranch(world, by, headRepository, headRef);
    const baseRef = given.optional("base") ?? repository.defaultBranch;
    const input = {
      repository,
      headRepository,
      headRef,
      baseRef,
      title: given.text("title"),
      ...given.picked("body", "draft"),
    };
    return fullPull(view, pulls.createPull(world, by, input));
  },
  convertIssueToPull: (world, by, given, view) => {
    const issue = given.issue();
    const headRef = given.text("head");
    if (!issue.repository.branches.has(headRef)) pulls.pushBranch(world, by, issue.repository, headRef);
    const baseRef = given.optional("base") ?? issue.repository.defaultBranch;
    return fullPull(
      view,
      pulls.convertToPull(world, by, issue, { headRepository: issue.repository, headRef, baseRef }),
    );
  },
  editPull: (world, by, given, view) =>
    fullPull(
      view,
      pulls.editPull(world, by, given.pull(), given.picked("title", "body", "state", "baseRef", "maintainerCanModify")),
    ),
  pushToPull: (world, by, given) => pulls.pushToPull(world, by, given.pull(), given.optional("sha")),
  mergePull: (world, by, given) => pulls.mergePull(world, by, given.pull()),
  convertToDraft: (world, by, given) => pulls.setDraft(world, by, given.pull(), true),
  readyForReview: (world, by, given) => pulls.setDraft(world, by, given.pull(), false),
  requestReviewers: (world, by, given) =>
    pulls.requestReviewers(world, by, given.pull(), given.userIds("logins") ?? []),
  removeRequestedReviewers: (world, by, given) =>
    pulls.removeRequestedReviewers(world, by, given.pull(), given.userIds("logins") ?? []),
  deleteForkHead: (world, _by, given) => pulls.deleteForkHead(world, given.pull()),

  /** A commit names the issue: no webhook tells of it, and no time moves. */
  referenceIssue: (world, by, given, view) => {
    const event = { happened: "referenced", commitId: given.optional("sha") ?? world.newSha() };
    return issueEventView(view, addIssueEvent(world, by, given.issue(), event), { withIssue: true });
  },

  createComment: (world, by, given, view) =>
    commentView(view, createComment(world, by, given.issue(), given.text("body"))),
  editComment: (world, by, given) => editComment(world, by, given.row("comment", world.comments), given.text("body")),
  deleteComment: (world, by, given) => deleteComment(world, by, given.row("comment", world.comments)),

  createReview: (world, by, given, view) => {
    const state =
      given.choice("state", ["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "PENDING"] as const) ?? "COMMENTED";
    return reviewView(
      view,
      reviews.createReview(world, by, given.pull(), { state, ...given.picked("body", "comments") }),
    );
  },
  submitReview: (world, by, given) => {
    const state = given.choice("state", ["APPROVED", "CHANGES_REQUESTED", "COMMENTED"] as const) ?? "COMMENTED";
    reviews.submitReview(world, by, given.row("review", world.reviews), state, given.optional("body"));
  },
  editReview: (world, by, given) =>
    reviews.editReview(world, by, given.row("review", world.reviews), given.text("body")),
  dismissReview: (world, by, given) => reviews.dismissReview(world, by, given.row("review", world.reviews)),
  deleteReview: (world, _by, given) => reviews.deleteReview(world, given.row("review", world.reviews)),
  createReviewComment: (world, by, given, view) => {
    const input = {
      body: given.text("body"),
      path: given.optional("path") ?? "README.md",
      ...given.picked("line", "inReplyToId", "commitId"),
    };
    return reviewCommentView(view, reviews.createReviewComment(world, by, given.pull(), input));
  },
  editReviewComment: (world, by, given) =>
    reviews.editReviewComment(world, by, given.row("comment", world.reviewComments), given.text("body")),
  deleteReviewComment: (world, by, given) =>
    reviews.deleteReviewComment(world, by, given.row("comment", world.reviewComments)),

  createLabel: (world, by, given, view) =>
    labelView(
      view,
      createLabel(world, by, {
        repository: given.repository(),
        name: given.text("name"),
        ...given.picked("color", "description"),
      }),
    ),
  editLabel: (world, by, given, view) => {
    const label = given.label("label");
    editLabel(world, by, label, given.picked("name", "color", "description"));
    return labelView(view, label);
  },
  deleteLabel: (world, by, given) => deleteLabel(world, by, given.label("label")),

  createMilestone: (world, by, given, view) => {
    const input = {
      repository: given.repository(),
      title: given.text("title"),
      ...given.picked("description", "state", "dueOn"),
    };
    return milestoneView(view, createMilestone(world, by, input));
  },
  editMilestone: (world, by, given, view) => {
    const milestone = given.milestone("milestone");
    editMilestone(world, by, milestone, given.picked("title", "description", "state", "dueOn"));
    return milestoneView(view, milestone);
  },
  deleteMilestone: (world, by, given) => deleteMilestone(world, by, given.milestone("milestone")),

  ...CODE_MUTATIONS,
};

/**
 * Runs one change. Throws a sentence when the name or an argument is wrong, a `Refusal` when the service would refuse.
 */
export function mutate(world: World, view: View, json: Readonly<Record<string, unknown>>): unknown {
  const op = json.op;
  const mutation = typeof op === "string" && Object.hasOwn(MUTATIONS, op) ? MUTATIONS[op] : undefined;
  if (!mutation) throw new Error(`There is no change "${String(op)}"; there are: ${Object.keys(MUTATIONS).join(", ")}`);
  const given = new Arguments(world, json);
  return mutation(world, given.actor(), given, view) ?? null;
}
