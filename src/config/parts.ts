/** What can be mirrored of a repository beside its issues and pull requests. */
export const MIRROR_PARTS = ["checks"] as const;
/** checks: check runs, check suites and commit statuses. */
export type MirrorPart = (typeof MIRROR_PARTS)[number];
