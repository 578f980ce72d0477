/** What can be mirrored of a repository beside its issues and pull requests. */
export const MIRROR_PARTS = ["checks", "commits", "deployments", "releases", "refs", "threads"] as const;
/**
 * - checks: check runs, check suites and commit statuses.
 * - commits: the commits and files of pull requests.
 * - deployments: deployments and their statuses.
 * - releases: releases with their assets.
 * - refs: branches and tags.
 * - threads: which review comments make a thread, and whether it is resolved.
 */
export type MirrorPart = (typeof MIRROR_PARTS)[number];
