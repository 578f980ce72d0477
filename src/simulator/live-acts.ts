/** What can happen in a live world, how often, and how each is done. */
import { createComment, deleteComment, editComment } from "./changes/comments.ts";
import { createIssue, deleteIssue, editIssue, lockIssue, transferIssue, unlockIssue } from "./changes/issues.ts";
import { createLabel, deleteLabel, editLabel } from "./changes/labels.ts";
import { createMilestone, editMilestone } from "./changes/milestones.ts";
import {
  createPull,
  deleteForkHead,
  editPull,
  mergePull,
  pushBranch,
  pushToPull,
  requestReviewers,
  setDraft,
} from "./changes/pulls.ts";
import { renameRepository, transferRepository } from "./changes/repositories.ts";
import { createReview, createReviewComment, dismissReview, editReviewComment } from "./changes/reviews.ts";
import { deleteUser, renameUser } from "./changes/users.ts";
import * as faker from "./faker.ts";
import type { Random } from "./random.ts";
import { GHOST_ID, type Issue, type PullIssue, type Repository, type User } from "./records.ts";
import { isPull, type World } from "./world.ts";

/** Relative frequencies. `deleteUser` happens only when asked for: it may take an account that a token belongs to. */
export const FREQUENCIES = {
  open: 14,
  openPull: 5,
  edit: 10,
  label: 14,
  assign: 7,
  milestone: 4,
  comment: 24,
  editComment: 4,
  deleteComment: 1,
  close: 9,
  reopen: 3,
  merge: 4,
  review: 6,
  dismissReview: 0.4,
  reviewComment: 4,
  editReviewComment: 0.6,
  push: 4,
  draft: 1,
  requestReview: 2,
  lock: 0.6,
  deleteIssue: 0.4,
  transferIssue: 0.3,
  createLabel: 0.4,
  renameLabel: 0.5,
  deleteLabel: 0.1,
  createMilestone: 0.2,
  editMilestone: 0.4,
  renameUser: 0.2,
  deleteFork: 0.2,
  renameRepository: 0.05,
  transferRepository: 0.02,
  deleteUser: 0,
} as const;

export type Kind = keyof typeof FREQUENCIES;

export interface Deed {
  readonly kind: Kind;
  /** `owner/name` after the deed; null where it concerns no repository. */
  readonly repository: string | null;
  /** The issue or pull request concerned. */
  readonly number: number | null;
}

/** Where things happen and who does them. */
export class Stage {
  readonly #world: World;
  readonly #random: Random;
  /** Who can act, as long as the number of accounts stays the same. */
  #people: { readonly accounts: number; readonly users: readonly User[] } = { accounts: 0, users: [] };

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  /** Null when there is nothing to do it to. May throw a `Refusal`. */
  perform(kind: Kind): Deed | null {
    const repository = this.#repository();
    const by = this.#person();
    if (!repository || !by) return null;
    const touched = this.#act(kind, repository, by);
    if (!touched) return null;
    const issue = "number" in touched && "thread" in touched ? touched : null;
    const where = issue ? issue.repository : "rows" in touched ? touched : null;
    return { kind, repository: where ? this.#world.fullName(where) : null, number: issue?.number ?? null };
  }

  /** What was touched, or undefined when there was nothing to touch. */
  #act(kind: Kind, repository: Repository, user: User): Issue | Repository | User | undefined {
    const world = this.#world;
    const random = this.#random;
    const by = user.id;
    switch (kind) {
      case "open":
        return createIssue(world, by, {
          repository,
          title: faker.title(random),
          body: random.chance(0.1) ? null : this.#body(repository),
          labelIds: random.chance(0.3) ? this.#labelIds(repository) : [],
        });
      case "openPull":
        return this.#openPull(repository, by);
      case "edit": {
        const issue = this.#issue(repository);
        return (
          issue &&
          editIssue(
            world,
            by,
            issue,
            random.chance(0.4) ? { title: faker.title(random) } : { body: this.#body(repository) },
          )
        );
      }
      case "label": {
        const issue = this.#issue(repository);
        const [labelId] = this.#labelIds(repository);
        if (!issue || labelId === undefined) return undefined;
        const { labelIds } = issue;
        return editIssue(world, by, issue, {
          labelIds: labelIds.includes(labelId) ? labelIds.filter((id) => id !== labelId) : [...labelIds, labelId],
        });
      }
      case "assign": {
        const issue = this.#issue(repository);
        const assignee = this.#person();
        return (
          issue &&
          assignee &&
          editIssue(world, by, issue, {
            assigneeIds: issue.assigneeIds.length > 2 ? [] : [...new Set([...issue.assigneeIds, assignee.id])],
          })
        );
      }
      case "milestone": {
        const issue = this.#issue(repository);
        const ids = [...repository.rows.milestones.keys()];
        return (
          issue &&
          editIssue(world, by, issue, { milestoneId: ids.length === 0 || random.chance(0.3) ? null : random.pick(ids) })
        );
      }
      case "comment": {
        const issue = this.#issue(repository);
        return issue && createComment(world, by, issue, this.#reply(repository)).issue;
      }
      case "editComment":
      case "deleteComment": {
        const issue = this.#issue(repository, (one) => one.thread.length > 0);
        if (!issue) return undefined;
        const comment = random.pick(issue.thread);
        if (kind === "editComment") editComment(world, by, comment, this.#reply(repository));
        else deleteComment(world, by, comment);
        return issue;
      }
      case "close": {
        const issue = this.#issue(repository, (one) => one.state === "open");
        return (
          issue &&
          editIssue(world, by, issue, {
            state: "closed",
            stateReason: random.pick(["completed", "completed", "not_planned"] as const),
          })
        );
      }
      case "reopen": {
        const issue = this.#issue(repository, (one) => one.state === "closed" && one.pull?.mergedAt == null);
        return issue && editIssue(world, by, issue, { state: "open" });
      }
      case "lock": {
        const issue = this.#issue(repository);
        if (!issue) return undefined;
        if (issue.locked) unlockIssue(world, by, issue);
        else lockIssue(world, by, issue, random.pick(faker.LOCK_REASONS));
        return issue;
      }
      case "deleteIssue": {
        const issue = this.#issue(repository, (one) => !one.pull);
        if (issue) deleteIssue(world, by, issue);
        return issue;
      }
      case "transferIssue": {
        const issue = this.#issue(repository, (one) => !one.pull);
        const target = this.#repository();
        return issue && target && target !== repository ? transferIssue(world, by, issue, target) : undefined;
      }
      case "createLabel":
        return createLabel(world, by, {
          repository,
          name: `${random.pick(faker.LABELS).name} ${random.int(2, 9_999)}`,
          color: random.hex(6),
        }).repository;
      case "renameLabel":
      case "deleteLabel": {
        const [labelId] = this.#labelIds(repository);
        const label = labelId === undefined ? undefined : world.labels.get(labelId);
        if (!label) return undefined;
        if (kind === "deleteLabel") deleteLabel(world, by, label);
        else
          editLabel(
            world,
            by,
            label,
            random.chance(0.3) ? { color: random.hex(6) } : { name: `${label.name.slice(0, 30)} ${random.int(2, 99)}` },
          );
        return repository;
      }
      case "createMilestone":
        return createMilestone(world, by, {
          repository,
          title: `v${random.int(4, 99)}.${random.int(0, 9_999)}`,
          dueOn: world.now() + 90 * 86_400,
        }).repository;
      case "editMilestone": {
        const milestones = [...repository.rows.milestones.values()];
        if (milestones.length === 0) return undefined;
        const milestone = random.pick(milestones);
        if (random.chance(0.4))
          editMilestone(world, by, milestone, { state: milestone.state === "open" ? "closed" : "open" });
        else editMilestone(world, by, milestone, { description: this.#reply(repository) });
        return repository;
      }
      case "renameUser": {
        const author = world.users.get(this.#issue(repository)?.authorId ?? GHOST_ID);
        if (author?.type !== "User" || author.id === GHOST_ID) return undefined;
        renameUser(world, author, `${author.login.replace(/-\d+$/, "").slice(0, 30)}-${random.int(2, 999_999)}`);
        return author;
      }
      case "deleteUser": {
        const author = world.users.get(this.#issue(repository)?.authorId ?? GHOST_ID);
        if (author?.type !== "User" || author.id === GHOST_ID) return undefined;
        if ([...world.repositories.values()].some((one) => one.ownerId === author.id)) return undefined;
        deleteUser(world, by, author);
        return author;
      }
      case "renameRepository":
        renameRepository(
          world,
          by,
          repository,
          `${repository.name.replace(/-\d+$/, "").slice(0, 80)}-${random.int(2, 999_999)}`,
        );
        return repository;
      case "transferRepository": {
        const owner = this.#person();
        if (!owner || owner.id === repository.ownerId) return undefined;
        transferRepository(world, by, repository, owner);
        return repository;
      }
      default:
        return this.#actOnPull(kind, repository, by);
    }
  }

  #actOnPull(
    kind:
      | "merge"
      | "review"
      | "dismissReview"
      | "reviewComment"
      | "editReviewComment"
      | "push"
      | "draft"
      | "requestReview"
      | "deleteFork",
    repository: Repository,
    by: number,
  ): Issue | undefined {
    const world = this.#world;
    const random = this.#random;
    switch (kind) {
      case "merge": {
        const pull = this.#pull(repository, (one) => one.state === "open" && !one.pull.draft);
        if (pull) mergePull(world, by, pull);
        return pull;
      }
      case "review": {
        const pull = this.#pull(repository, (one) => one.state === "open");
        if (!pull) return undefined;
        const state =
          pull.authorId === by ? "COMMENTED" : random.pick(["APPROVED", "CHANGES_REQUESTED", "COMMENTED"] as const);
        const comments = random.chance(0.5)
          ? [{ path: faker.filePath(random), body: faker.reviewNote(random), line: random.int(1, 300) }]
          : [];
        createReview(world, by, pull, { state, body: random.chance(0.5) ? "" : this.#reply(repository), comments });
        return pull;
      }
      case "dismissReview": {
        const standing = (one: PullIssue) =>
          one.pull.reviews.filter(({ state }) => state === "APPROVED" || state === "CHANGES_REQUESTED");
        const pull = this.#pull(repository, (one) => standing(one).length > 0);
        if (pull) dismissReview(world, by, random.pick(standing(pull)));
        return pull;
      }
      case "reviewComment": {
        const pull = this.#pull(repository);
        if (!pull) return undefined;
        const answered =
          pull.pull.reviewComments.length > 0 && random.chance(0.5) ? random.pick(pull.pull.reviewComments) : undefined;
        createReviewComment(world, by, pull, {
          body: faker.reviewNote(random),
          path: faker.filePath(random),
          line: random.int(1, 300),
          ...(answered ? { inReplyToId: answered.id } : {}),
        });
        return pull;
      }
      case "editReviewComment": {
        const pull = this.#pull(repository, (one) => one.pull.reviewComments.length > 0);
        if (pull)
          editReviewComment(world, by, random.pick(pull.pull.reviewComments), `${faker.reviewNote(random)} (edited)`);
        return pull;
      }
      case "push": {
        const pull = this.#pull(repository, (one) => one.state === "open" && one.pull.head.repositoryId !== null);
        if (pull) pushToPull(world, by, pull);
        return pull;
      }
      case "draft": {
        const pull = this.#pull(repository, (one) => one.state === "open");
        if (pull) setDraft(world, by, pull, !pull.pull.draft);
        return pull;
      }
      case "requestReview": {
        const pull = this.#pull(repository, (one) => one.state === "open");
        const reviewer = this.#person();
        if (!pull || !reviewer || reviewer.id === pull.authorId) return undefined;
        requestReviewers(world, by, pull, [reviewer.id]);
        return pull;
      }
      case "deleteFork": {
        const pull = this.#pull(
          repository,
          (one) => one.pull.head.repositoryId !== null && one.pull.head.repositoryId !== repository.id,
        );
        if (pull) deleteForkHead(world, pull);
        return pull;
      }
      default:
        return kind satisfies never;
    }
  }

  #openPull(repository: Repository, by: number): Issue {
    const world = this.#world;
    const random = this.#random;
    const headRef = `${faker.branchName(random)}-${random.hex(6)}`;
    if (!repository.branches.has(repository.defaultBranch)) pushBranch(world, by, repository, repository.defaultBranch);
    pushBranch(world, by, repository, headRef);
    const pull = createPull(world, by, {
      repository,
      headRepository: repository,
      headRef,
      baseRef: repository.defaultBranch,
      title: faker.title(random),
      body: this.#body(repository),
      draft: random.chance(0.15),
    });
    if (random.chance(0.3)) editPull(world, by, pull, { maintainerCanModify: true });
    return pull;
  }

  #repository(): Repository | undefined {
    const open = [...this.#world.repositories.values()].filter((one) => !one.archived && !one.fork && one.hasIssues);
    return open.length === 0 ? undefined : this.#random.pick(open);
  }

  #person(): User | undefined {
    const { users } = this.#world;
    if (this.#people.accounts !== users.size) {
      this.#people = {
        accounts: users.size,
        users: [...users.values()].filter((user) => user.type === "User" && user.id !== GHOST_ID),
      };
    }
    const people = this.#people.users;
    return people.length === 0 ? undefined : this.#random.pick(people);
  }

  /** Mostly a recent one. Undefined when a few dozen tries found none. */
  #issue(repository: Repository, test: (issue: Issue) => boolean = () => true): Issue | undefined {
    const { lastNumber, rows } = repository;
    for (let attempt = 0; attempt < 40 && lastNumber > 0; attempt++) {
      const issue = rows.byNumber[lastNumber - Math.floor(this.#random.next() ** 2 * lastNumber)];
      if (issue && !issue.deleted && test(issue)) return issue;
    }
    return undefined;
  }

  #pull(repository: Repository, test: (pull: PullIssue) => boolean = () => true): PullIssue | undefined {
    return this.#issue(repository, (issue) => isPull(issue) && test(issue)) as PullIssue | undefined;
  }

  #labelIds(repository: Repository): readonly number[] {
    const ids = [...repository.rows.labels.keys()];
    return ids.length === 0 ? [] : [this.#random.pick(ids)];
  }

  #surroundings(repository: Repository): faker.Surroundings {
    return { logins: [this.#person()?.login ?? "ghost"], lastNumber: repository.lastNumber };
  }

  #body(repository: Repository): string {
    return faker.body(this.#random, this.#surroundings(repository));
  }

  #reply(repository: Repository): string {
    return faker.reply(this.#random, this.#surroundings(repository));
  }
}
