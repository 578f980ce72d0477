/** The whole truth in REST's shapes, written piece by piece: a million rows never stand in memory as one text. */

import { commentView, reviewCommentView, reviewView } from "../views/comment.ts";
import { issueView, labelView, milestoneView } from "../views/issue.ts";
import { fullPull } from "../views/pull.ts";
import { fullRepository } from "../views/repository.ts";
import type { View } from "../views/view.ts";
import type { Repository } from "../world/records.ts";
import { isPull } from "../world/world.ts";

/** Counts of every repository, with the secret ones. */
export function summary(view: View) {
  const repositories = [...view.world.repositories.values()].map((repository) => {
    const { rows } = repository;
    const pulls = rows.pullsByCreated.size;
    let reviews = 0;
    for (const issue of rows.pullsByCreated.ascending()) reviews += issue.pull?.reviews.length ?? 0;
    return {
      id: repository.id,
      full_name: view.world.fullName(repository),
      visibility: repository.visibility,
      fork: repository.fork,
      archived: repository.archived,
      issues: rows.issuesByCreated.size - pulls,
      pulls,
      open_issues: repository.openIssues,
      open_pulls: repository.openPulls,
      comments: rows.commentsById.size,
      reviews,
      review_comments: rows.reviewCommentsById.size,
      labels: rows.labels.size,
      milestones: rows.milestones.size,
      hooks: rows.hooks.size,
    };
  });
  return { repositories };
}

/**
 * `{repositories: [{repository, labels, milestones, issues, pulls, comments, reviews, review_comments}]}`. The view
 * should be one that sees everything. The world must not change while it is read within one piece; between pieces it
 * may.
 */
export function* wholeState(view: View, repositories: readonly Repository[]): Generator<string> {
  yield '{"repositories":[';
  for (const [at, repository] of repositories.entries()) {
    const { rows } = repository;
    const issues = [...rows.issuesByCreated.ascending()];
    const pulls = issues.filter(isPull);
    yield `${at === 0 ? "" : ","}{"repository":${JSON.stringify(fullRepository(view, repository))}`;
    yield* array("labels", rows.labels.values(), (row) => labelView(view, row));
    yield* array("milestones", rows.milestones.values(), (row) => milestoneView(view, row));
    yield* array("issues", issues, (row) => issueView(view, row));
    yield* array("pulls", pulls, (row) => fullPull(view, row));
    yield* array("comments", [...rows.commentsById.ascending()], (row) => commentView(view, row));
    yield* array(
      "reviews",
      pulls.flatMap((row) => row.pull.reviews).filter((row) => row.state !== "PENDING"),
      (row) => reviewView(view, row),
    );
    yield* array("review_comments", [...rows.reviewCommentsById.ascending()], (row) => reviewCommentView(view, row));
    yield "}";
  }
  yield "]}";
}

const ROWS_A_PIECE = 200;

function* array<Row>(name: string, rows: Iterable<Row>, show: (row: Row) => unknown): Generator<string> {
  yield `,"${name}":[`;
  let piece: string[] = [];
  let first = true;
  for (const row of rows) {
    piece.push(JSON.stringify(show(row)));
    if (piece.length < ROWS_A_PIECE) continue;
    yield `${first ? "" : ","}${piece.join(",")}`;
    first = false;
    piece = [];
  }
  if (piece.length > 0) yield `${first ? "" : ","}${piece.join(",")}`;
  yield "]";
}
