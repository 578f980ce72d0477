/** What can be mirrored of a repository beside its issues and pull requests. */
export const MIRROR_PARTS = ["checks", "commits", "releases"] as const;
/**
 * - checks: check runs, check suites and commit statuses.
 * - commits: the commits and files of pull requests.
 * - releases: releases with their assets.
 */
export type MirrorPart = (typeof MIRROR_PARTS)[number];
