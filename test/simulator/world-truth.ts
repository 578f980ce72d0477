import { expect } from "vitest";
import { isPull, type World } from "../../src/simulator/world/world.ts";

/** Everything in a world as one text, so that two worlds can be compared. */
export function wholeTruth(world: World): string {
  const plain = (_: string, value: unknown) => {
    if (value instanceof Map) return [...value];
    if (value instanceof Set) return [...value];
    return value;
  };
  const issues = [...world.issues.values()].map(({ repository, thread, pull, ...issue }) => ({
    ...issue,
    repository: repository.id,
    thread: thread.map(({ issue: _issue, ...comment }) => comment),
    pull: pull && {
      ...pull,
      reviews: pull.reviews.map(({ issue: _issue, ...review }) => review),
      reviewComments: pull.reviewComments.map(({ issue: _issue, ...comment }) => comment),
    },
  }));
  const repositories = [...world.repositories.values()].map(({ rows: _rows, ...repository }) => repository);
  const within = [...world.labels.values(), ...world.milestones.values()].map(({ repository, ...row }) => ({
    ...row,
    repository: repository.id,
  }));
  return JSON.stringify([[...world.users.values()], repositories, within, issues], plain);
}

/** Expects that counters, indexes and references agree with the rows. */
export function expectConsistent(world: World): void {
  for (const repository of world.repositories.values()) {
    const { rows } = repository;
    const issues = rows.byNumber.filter((issue) => issue !== undefined);
    const ids = (list: Iterable<{ readonly id: number }>) => [...list].map((row) => row.id).sort((a, b) => a - b);
    expect(ids(rows.issuesByCreated.ascending())).toEqual(ids(issues));
    expect(ids(rows.issuesByUpdated.ascending())).toEqual(ids(issues));
    expect(ids(rows.pullsByCreated.ascending())).toEqual(ids(issues.filter(isPull)));
    expect(rows.issuesByCreated.size).toBe(issues.length);
    expect(repository.openIssues).toBe(issues.filter((issue) => !issue.pull && issue.state === "open").length);
    expect(repository.openPulls).toBe(issues.filter((issue) => issue.pull && issue.state === "open").length);
    const updated = [...rows.issuesByUpdated.ascending()].map((issue) => issue.updatedAt);
    expect(updated).toEqual([...updated].sort((a, b) => a - b));
    const comments = issues.flatMap((issue) => [...issue.thread]);
    expect(ids(rows.commentsById.ascending())).toEqual(ids(comments));
    expect(ids(rows.commentsByUpdated.ascending())).toEqual(ids(comments));
    const reviewComments = issues.filter(isPull).flatMap((issue) => [...issue.pull.reviewComments]);
    expect(ids(rows.reviewCommentsByUpdated.ascending())).toEqual(ids(reviewComments));
    for (const milestone of rows.milestones.values()) {
      const carriers = issues.filter((issue) => issue.milestoneId === milestone.id);
      expect(milestone.openIssues).toBe(carriers.filter((issue) => issue.state === "open").length);
      expect(milestone.closedIssues).toBe(carriers.filter((issue) => issue.state === "closed").length);
    }
    for (const issue of issues) {
      expect(issue.repository).toBe(repository);
      for (const id of issue.labelIds) expect(rows.labels.has(id)).toBe(true);
      if (issue.milestoneId !== null) expect(rows.milestones.has(issue.milestoneId)).toBe(true);
      expect(issue.closedAt === null).toBe(issue.state === "open");
      for (const comment of issue.thread) expect(comment.issue).toBe(issue);
    }
  }
}
