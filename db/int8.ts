import pg from "pg";

const INT8 = pg.types.builtins.INT8;
/** In `pg_type.dat`; the driver has no name for it. */
const INT8_ARRAY: number = 1016;

/**
 * Reads `int8` as a number, as ids, counts and revisions are everywhere else. The driver leaves it a text.
 * @param others reads all other types
 */
export function withNumbers(others: pg.CustomTypesConfig): pg.CustomTypesConfig {
  const textsOf: (array: string) => (string | null)[] = others.getTypeParser(INT8_ARRAY, "text");
  const numbersOf = (array: string) => textsOf(array).map((text) => (text === null ? null : exactNumber(text)));
  return {
    getTypeParser: (type, format) => {
      if (type === INT8) return exactNumber;
      return type === INT8_ARRAY ? numbersOf : others.getTypeParser(type, format);
    },
  };
}

/** @throws RangeError for a text that no number holds exactly. What Tain stores is never that large */
function exactNumber(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw new RangeError(`Postgres sent ${text}, which no number holds exactly`);
  return number;
}
