import { validateHeaderName, validateHeaderValue } from "node:http";

const LINE_END = "\r\n";

/** Names that were found right. Those of our own are few; those that upstream may send are without number. */
const checkedNames = new Set<string>();
const MOST_NAMES = 500;

/** Headers as they go over the wire. They are checked once, when they are made, and may be sent many times. */
export class HeaderLines {
  /** Each line has its end. */
  readonly text: string;

  private constructor(text: string) {
    this.text = text;
  }

  /**
   * @param headers by their names; one that has several values has as many lines
   * @throws TypeError for a name or value that HTTP does not allow, such as one with a line break
   */
  static of(headers: Readonly<Record<string, string | readonly string[]>>): HeaderLines {
    let text = "";
    for (const name in headers) {
      const value = headers[name] ?? "";
      if (typeof value === "string") text += line(name, value);
      else for (const one of value) text += line(name, one);
    }
    return new HeaderLines(text);
  }

  and({ text }: HeaderLines): HeaderLines {
    return new HeaderLines(this.text + text);
  }

  get pairs(): [name: string, value: string][] {
    const lines = this.text.split(LINE_END).slice(0, -1);
    return lines.map((one) => {
      const end = one.indexOf(": ");
      return [one.slice(0, end), one.slice(end + 2)];
    });
  }
}

function line(name: string, value: string): string {
  if (!checkedNames.has(name)) {
    validateHeaderName(name);
    if (checkedNames.size < MOST_NAMES) checkedNames.add(name);
  }
  validateHeaderValue(name, value);
  return `${name}: ${value}${LINE_END}`;
}
