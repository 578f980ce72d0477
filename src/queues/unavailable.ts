/** Redis cannot take a job at the moment, or does not list the jobs that it has. */
export class QueueUnavailableError extends Error {
  override name = "QueueUnavailableError";
}
