import { and, eq, inArray } from "drizzle-orm";
import type { Database, Queries } from "../../db/connection.ts";
import { validators } from "../../db/schema/sync.ts";

/** What upstream gave us to ask one question again without cost, with one credential. */
export type Validator = typeof validators.$inferSelect;

/**
 * Remembers that the page is stored, so that it can be asked for conditionally.
 *
 * Call it in the transaction that stores the page's rows, never before: a validator says "we have this page". Were it saved
 * and the rows were lost to a crash, upstream would answer 304 from then on, and the page would stay lost for good.
 * Two workers that save the same page at once leave the later one's validator; either is true.
 */
export async function saveValidator(tx: Queries, validator: Validator): Promise<void> {
  const { credential: _credential, path: _path, ...rest } = validator;
  await tx
    .insert(validators)
    .values(validator)
    .onConflictDoUpdate({ target: [validators.credential, validators.path], set: rest });
}

/** What we may ask conditionally, by credential. */
export async function loadValidators(
  db: Pick<Database, "select">,
  credentials: readonly string[],
  path: string,
): Promise<Map<string, Validator>> {
  const rows = await db
    .select()
    .from(validators)
    .where(and(inArray(validators.credential, [...credentials]), eq(validators.path, path)));
  return new Map(rows.map((row) => [row.credential, row]));
}

/**
 * The validator's name for a question. Another media type gets another body, and Last-Modified does not tell them apart,
 * so it is part of the name; `#` begins no part of a path that is sent.
 */
export function validatorPath(path: string, accept: string | undefined): string {
  return accept === undefined ? path : `${path}#${accept}`;
}
