import { validateHeaderName, validateHeaderValue } from "node:http";

const LINE_END = "\r\n";

/** The headers that the server gives each answer, unless the answer brings them. */
const SERVERS_OWN = new Set(["connection", "date", "keep-alive", "transfer-encoding"]);

/** Names that were found right, and whether they are the server's. Upstream may send names without number. */
const checkedNames = new Map<string, boolean>();
const MOST_NAMES = 500;

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
  const known = checkedNames.get(name);
  if (known !== undefined) return known;
  validateHeaderName(name);
  const isOwn = SERVERS_OWN.has(name.toLowerCase());
  if (checkedNames.size < MOST_NAMES) checkedNames.set(name, isOwn);
  return isOwn;
}

function line(name: string, value: string): string {
  validateHeaderValue(name, value);
  return `${name}: ${value}${LINE_END}`;
}
