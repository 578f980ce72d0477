import {
  createPull,
  deleteForkHead,
  editPull,
  mergePull,
  pushBranch,
  pushToPull,
  requestReviewers,
  setDraft,
} from "../changes/pulls.ts";
import { createReview, createReviewComment, dismissReview, editReviewComment } from "../changes/reviews.ts";
import * as faker from "../world/faker.ts";
import type { PullIssue } from "../world/records.ts";
import type { Act } from "./act.ts";

/** What people do with pull requests alone. */
export const PULL_ACTS = {
  openPull: (stage, repository, by) => {
    const { world, random } = stage;
    const headRef = `${faker.branchName(random)}-${random.hex(6)}`;
    if (!repository.branches.has(repository.defaultBranch)) pushBranch(world, by, repository, repository.defaultBranch);
    pushBranch(world, by, repository, headRef);
    const pull = createPull(world, by, {
      repository,
      headRepository: repository,
      headRef,
      baseRef: repository.defaultBranch,
      title: faker.title(random),
      body: stage.body(repository),
      draft: random.chance(0.15),
    });
    if (random.chance(0.3)) editPull(world, by, pull, { maintainerCanModify: true });
    return pull;
  },

  merge: (stage, repository, by) => {
    const pull = stage.pull(repository, (one) => one.state === "open" && !one.pull.draft);
    if (pull) mergePull(stage.world, by, pull);
    return pull;
  },

  review: (stage, repository, by) => {
    const { world, random } = stage;
    const pull = stage.pull(repository, isOpen);
    if (!pull) return undefined;
    const state =
      pull.authorId === by ? "COMMENTED" : random.pick(["APPROVED", "CHANGES_REQUESTED", "COMMENTED"] as const);
    const comments = random.chance(0.5)
      ? [{ path: faker.filePath(random), body: faker.reviewNote(random), line: random.int(1, 300) }]
      : [];
    createReview(world, by, pull, { state, body: random.chance(0.5) ? "" : stage.reply(repository), comments });
    return pull;
  },

  dismissReview: (stage, repository, by) => {
    const pull = stage.pull(repository, (one) => standingReviews(one).length > 0);
    if (pull) dismissReview(stage.world, by, stage.random.pick(standingReviews(pull)));
    return pull;
  },

  reviewComment: (stage, repository, by) => {
    const { world, random } = stage;
    const pull = stage.pull(repository);
    if (!pull) return undefined;
    const { reviewComments } = pull.pull;
    const answered = reviewComments.length > 0 && random.chance(0.5) ? random.pick(reviewComments) : undefined;
    createReviewComment(world, by, pull, {
      body: faker.reviewNote(random),
      path: faker.filePath(random),
      line: random.int(1, 300),
      ...(answered ? { inReplyToId: answered.id } : {}),
    });
    return pull;
  },

  editReviewComment: (stage, repository, by) => {
    const { world, random } = stage;
    const pull = stage.pull(repository, (one) => one.pull.reviewComments.length > 0);
    if (!pull) return undefined;
    editReviewComment(world, by, random.pick(pull.pull.reviewComments), `${faker.reviewNote(random)} (edited)`);
    return pull;
  },

  push: (stage, repository, by) => {
    const pull = stage.pull(repository, (one) => isOpen(one) && one.pull.head.repositoryId !== null);
    if (pull) pushToPull(stage.world, by, pull);
    return pull;
  },

  draft: (stage, repository, by) => {
    const pull = stage.pull(repository, isOpen);
    if (pull) setDraft(stage.world, by, pull, !pull.pull.draft);
    return pull;
  },

  requestReview: (stage, repository, by) => {
    const pull = stage.pull(repository, isOpen);
    const reviewer = stage.person();
    if (!pull || !reviewer || reviewer.id === pull.authorId) return undefined;
    requestReviewers(stage.world, by, pull, [reviewer.id]);
    return pull;
  },

  deleteFork: (stage, repository) => {
    const pull = stage.pull(repository, ({ pull: { head } }) => {
      return head.repositoryId !== null && head.repositoryId !== repository.id;
    });
    if (pull) deleteForkHead(stage.world, pull);
    return pull;
  },
} satisfies Record<string, Act>;

function isOpen({ state }: PullIssue): boolean {
  return state === "open";
}

/** The reviews that can be dismissed. */
function standingReviews({ pull }: PullIssue) {
  return pull.reviews.filter(({ state }) => state === "APPROVED" || state === "CHANGES_REQUESTED");
}
