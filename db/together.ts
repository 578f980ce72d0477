/**
 * The results of statements of one transaction, which are sent without waiting for each other's answers. They run in order.
 * @throws what went wrong first, once no statement is under way any more
 */
export async function together<const T extends readonly Promise<unknown>[]>(
  statements: T,
): Promise<{ -readonly [At in keyof T]: Awaited<T[At]> }> {
  const outcomes = await Promise.allSettled(statements);
  const failures = outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  if (failures.length > 0) throw failures.find((failure) => !isAftermath(failure)) ?? failures[0];
  return await Promise.all(statements);
}

/** 25P02, in_failed_sql_transaction: an earlier statement has failed. */
function isAftermath({ code, cause }: { code?: unknown; cause?: { code?: unknown } }): boolean {
  return (cause?.code ?? code) === "25P02";
}
