/**
 * Facts that only the text of upstream's messages shows: no status, header or code does. All code that depends on such
 * a text is in this file, and returns a value.
 */

/** https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api#rate-limit-errors */
export function isSpentMessage(message: string): boolean {
  return /API rate limit (already )?exceeded/i.test(message);
}

/** The same page. Older enterprise servers say "abuse detection". */
export function isSecondaryMessage(message: string): boolean {
  return /secondary rate limit|abuse detection/i.test(message);
}

/**
 * Upstream uses the same words for a request with the token of a suspended installation, and for a request for a new
 * one.
 */
export function isSuspension(status: number, message: string): boolean {
  return status === 403 && /installation has been suspended/i.test(message);
}

/** A deleted issue gets a 410, too. Both wordings were seen. */
export function isIssuesOff(message: string): boolean {
  return /issues (has been|are) disabled/i.test(message);
}

/** GitHub has no code for a duplicate hook: the error's code is "custom". */
export function isDuplicateHook(status: number, body: string): boolean {
  return status === 422 && body.includes("already exists");
}

/** The words of graphql-ruby, from a server older than a field or type of our documents. */
export function isLackInSchema(message: string): boolean {
  return /doesn't exist on type|isn't a defined input type|no such type .* can't be|doesn't accept argument/i.test(
    message,
  );
}

/** A document that asks for a field which the token's scopes do not show is refused whole: `email` of a User is such a field. */
export function isScopeLacking(message: string): boolean {
  return /has not been granted the required scopes/i.test(message);
}

/** GraphQL reports that it ran out of time with status 200 and without a type. */
export function isTimeoutMessage(message: string): boolean {
  return /something went wrong while executing your query|couldn't respond to your request in time/i.test(message);
}
