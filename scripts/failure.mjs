// Reads code and message of a caught error. JavaScript allows any value to be thrown, so both functions check its type.

/**
 * The system's own name for the failure, such as ENOENT.
 * @param {unknown} error
 * @returns {string | undefined}
 */
export function codeOf(error) {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/**
 * @param {unknown} error
 * @returns {string}
 */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
