/** Rows that one statement deletes. It ends soon, so nothing waits long for its locks. */
const ROWS_AT_ONCE = 1_000;

/**
 * Deletes rows in short statements, until no more are found or `signal` is aborted. Answers how many went.
 * @param deleteSome deletes at most `most` rows, and answers how many
 */
export async function deleteInBatches(
  signal: AbortSignal | undefined,
  deleteSome: (most: number) => Promise<number>,
): Promise<number> {
  let deleted = 0;
  while (!signal?.aborted) {
    const count = await deleteSome(ROWS_AT_ONCE);
    deleted += count;
    if (count < ROWS_AT_ONCE) break;
  }
  return deleted;
}
