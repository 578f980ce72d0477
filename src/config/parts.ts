/** What can be mirrored of a repository beside its issues and pull requests. */
export const MIRROR_PARTS = [
  "actions",
  "checks",
  "commits",
  "deployments",
  "issue-events",
  "people",
  "releases",
  "refs",
  "threads",
] as const;
/**
 * - actions: workflows, their runs, and the jobs of these.
 * - checks: check runs, check suites and commit statuses.
 * - commits: the commits and files of pull requests; with refs, also the history of the default branch.
 * - deployments: deployments and their statuses.
 * - issue-events: what happened to issues and pull requests, such as that they were labeled or closed.
 * - people: who works in a repository, and the members and teams of the organisation that owns it.
 * - releases: releases with their assets.
 * - refs: branches and tags.
 * - threads: which review comments make a thread, and whether it is resolved.
 */
export type MirrorPart = (typeof MIRROR_PARTS)[number];
/** Stands for all of them. */
export const ALL_PARTS = "all";
