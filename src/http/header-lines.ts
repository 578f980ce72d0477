import { validateHeaderName, validateHeaderValue } from "node:http";

const LINE_END = "\r\n";

/** The headers that the server gives each answer, unless the answer brings them. */
const SERVERS_OWN: ReadonlySet<string> = new Set(["connection", "date", "keep-alive", "transfer-encoding"]);

/**
 * The names that usual answers have, checked here once: checking a name takes longer than writing its line. None is the
 * server's. Other names, such as upstream's, are checked each time.
 */
export const USUAL_NAMES: ReadonlySet<string> = new Set(
  [
    ...["Content-Type", "Content-Length", "Content-Encoding", "Cache-Control", "ETag", "Last-Modified", "Vary", "Link"],
    ...["Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Content-Security-Policy", "Referrer-Policy"],
    ...["X-Content-Type-Options", "X-Frame-Options", "X-XSS-Protection"],
    ...["X-GitHub-Api-Version-Selected", "X-GitHub-Enterprise-Version", "X-GitHub-Media-Type", "X-GitHub-Request-Id"],
    ...["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Resource", "X-RateLimit-Used"],
    ...["X-OAuth-Scopes", "X-Accepted-OAuth-Scopes"],
    ...["X-Tain-Confirmed-At", "X-Tain-Missing", "Age", "Warning", "Retry-After"],
  ].map(checked),
);

/** Headers as they go over the wire. They are checked once, when they are made, and may be sent many times. */
export class HeaderLines {
  /** Each line has its end. */
  readonly text: string;
  /** Some are headers that the server would give. */
  readonly hasServersOwn: boolean;

  private constructor(text: string, hasServersOwn: boolean) {
    this.text = text;
    this.hasServersOwn = hasServersOwn;
  }

  /**
   * @param headers by their names; one that has several values has as many lines
   * @throws TypeError for a name or value that HTTP does not allow, such as one with a line break
   */
  static of(headers: Readonly<Record<string, string | readonly string[]>>): HeaderLines {
    let text = "";
    let hasServersOwn = false;
    for (const name in headers) {
      const value = headers[name] ?? "";
      if (isServersOwn(name)) hasServersOwn = true;
      if (typeof value === "string") text += line(name, value);
      else for (const one of value) text += line(name, one);
    }
    return new HeaderLines(text, hasServersOwn);
  }

  and({ text, hasServersOwn }: HeaderLines): HeaderLines {
    return new HeaderLines(this.text + text, this.hasServersOwn || hasServersOwn);
  }

  get pairs(): [name: string, value: string][] {
    const lines = this.text.split(LINE_END).slice(0, -1);
    return lines.map((one) => {
      const end = one.indexOf(": ");
      return [one.slice(0, end), one.slice(end + 2)];
    });
  }
}

function isServersOwn(name: string): boolean {
  return !USUAL_NAMES.has(name) && SERVERS_OWN.has(checked(name).toLowerCase());
}

function checked(name: string): string {
  validateHeaderName(name);
  return name;
}

function line(name: string, value: string): string {
  validateHeaderValue(name, value);
  return `${name}: ${value}${LINE_END}`;
}
