/** Upstream does not show what was asked for. The message says so for the operator who selected it. */
export class AbsentError extends Error {
  override name = "AbsentError";
}

/** Upstream's GraphQL does not show a repository's pull requests, which may mean "not allowed" as well as "gone". */
export class PullsNotShownError extends Error {
  override name = "PullsNotShownError";
}

/**
 * A job was asked to stop, or another process may do its work by now: `cause` says which. Its next run continues at the
 * same page.
 */
export class InterruptedError extends Error {
  override name = "InterruptedError";
}

/** The repository was removed while a job worked on it, so the job ends. A selection may have brought it back since. */
export class RemovedError extends Error {
  override name = "RemovedError";
}
