import type { Caller } from "../callers/caller.ts";
import { ApiFault } from "../dialect/fault.ts";

const DOCS = "https://docs.github.com/rest";

/** The same for every repository, seen or unseen: it depends on the path's form alone. */
export function notMirrored(method: string): ApiFault {
  return new ApiFault(404, `Not Found: this mirror does not serve ${method} on this route`, { documentationUrl: DOCS });
}

export function quotaSpent(caller: Caller, requestId: string, now: Date): ApiFault {
  const time = `${now.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  const message =
    caller.kind === "user"
      ? `API rate limit exceeded for user ID ${caller.userId}. If you reach out to GitHub Support for help, please include the request ID ${requestId} and timestamp ${time}. For more on scraping GitHub and how it may affect your rights, please review our Terms of Service (https://docs.github.com/en/site-policy/github-terms/github-terms-of-service)`
      : `API rate limit exceeded for ${caller.address}. (But here's the good news: Authenticated requests get a higher rate limit. Check out the documentation for more details.)`;
  return new ApiFault(403, message, {
    documentationUrl: "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api",
  });
}
