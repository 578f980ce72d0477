/** Works on a long list of JSON element by element. As a whole it would hold the event loop for too long. */
import { type Json, parseExactly } from "../../json.ts";
import type { Pace } from "../../work/pace.ts";
import { joinedBytes } from "../../work/pace.ts";

/** The beginning of a list, or of the results of a search, up to the first element. */
const LIST_BEGINNING = /^(?:\[|\{"total_count":\d+,"incomplete_results":(?:true|false),"items":\[)/;
/** More bytes than any of these beginnings has. */
const HEAD_BYTES = 100;

const [QUOTE, COMMA, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN, CLOSE] = Buffer.from('",\\[]{}');

/** The text before, between and behind the elements of a list. */
export interface Frame {
  before: string;
  between: string;
  behind: string;
}

export function asBytes(text: string | Buffer): Buffer {
  return typeof text === "string" ? Buffer.from(text) : text;
}

/** Joins texts to one, in UTF-8. */
export function joined(
  texts: readonly (string | Buffer)[],
  { before, between, behind }: Frame,
  pace: Pace,
): Promise<Buffer> {
  return joinedBytes([before, ...texts.flatMap((text, at) => (at === 0 ? [text] : [between, text])), behind], pace);
}

/**
 * Our JSON with each element of its list mapped. JSON that is no list, or an empty one, is mapped as a whole.
 * @param map answers JSON text; `depth`: how many lists and objects contain the element
 * @param framed maps the text around the elements
 */
export async function mapElements(
  json: Buffer,
  pace: Pace,
  map: (element: Json, depth: number) => string | Promise<string>,
  framed: (frame: Frame) => Frame = (frame) => frame,
): Promise<Buffer> {
  const before = LIST_BEGINNING.exec(json.toString("latin1", 0, HEAD_BYTES))?.[0];
  if (before === undefined || json[before.length] === CLOSE_LIST)
    return Buffer.from(await map(parseExactly(json.toString()), 0));
  const depth = before === "[" ? 1 : 2;
  const texts: Buffer[] = [];
  let end = before.length - 1;
  do {
    if (pace.isOver()) await pace.turn();
    const start = end + 1;
    end = endOfElement(json, start);
    texts.push(Buffer.from(await map(parseExactly(json.toString("utf8", start, end)), depth)));
  } while (json[end] === COMMA);
  return joined(texts, framed({ before, between: ",", behind: json.toString("latin1", end) }), pace);
}

/** Our JSON as people read it: indented, with a newline at its end. */
export function indented(json: Buffer, pace: Pace): Promise<Buffer> {
  const lineAt = (depth: number) => `\n${"  ".repeat(depth)}`;
  return mapElements(
    json,
    pace,
    (element, depth) => (depth === 0 ? `${JSON.stringify(element, null, 2)}\n` : indentedBy(depth, element)),
    ({ before, behind }) => {
      const empty = JSON.stringify(JSON.parse(before + behind), null, 2);
      const at = empty.lastIndexOf("]");
      const depth = before === "[" ? 1 : 2;
      return {
        before: empty.slice(0, at) + lineAt(depth),
        between: `,${lineAt(depth)}`,
        behind: `${lineAt(depth - 1)}${empty.slice(at)}\n`,
      };
    },
  );
}

/** An element, indented as within so many lists. The lists help to indent: doing it line by line takes longer. */
function indentedBy(depth: number, element: Json): string {
  let nested = element;
  for (let level = 0; level < depth; level++) nested = [nested];
  const text = JSON.stringify(nested, null, 2);
  // Each list adds a bracket and a newline, and blanks on the next line.
  const [before, behind] = depth === 1 ? ["[\n  ", "\n]"] : ["[\n  [\n    ", "\n  ]\n]"];
  return text.slice(before.length, text.length - behind.length);
}

/** The place of the comma or bracket that ends the element. */
function endOfElement(json: Buffer, start: number): number {
  let depth = 0;
  for (let at = start; at < json.length; at++) {
    switch (json[at]) {
      case QUOTE:
        at = closingQuote(json, at);
        break;
      case OPEN_LIST:
      case OPEN:
        depth += 1;
        break;
      case CLOSE_LIST:
      case CLOSE:
        if (depth === 0) return at;
        depth -= 1;
        break;
      case COMMA:
        if (depth === 0) return at;
        break;
    }
  }
  throw new Error("The list of an answer of ours has no end");
}

/** The place of the quote that ends the text. */
function closingQuote(json: Buffer, start: number): number {
  for (let at = start + 1; at < json.length; at++) {
    if (json[at] === QUOTE) return at;
    // A backslash escapes the next character, so that one cannot end the text.
    if (json[at] === BACKSLASH) at += 1;
  }
  throw new Error("A text in an answer of ours has no end");
}

/** Agents that people read the answers of. The service indents JSON for them, after the ETag was made. */
const READ_BY_PEOPLE = /curl|Wget|Safari|Firefox/;

/** JSON as this agent gets it: indented for people. */
export async function laidOut(body: string | Buffer, agent: string | undefined, pace: Pace): Promise<string | Buffer> {
  return isLaidOut(agent) ? await indented(asBytes(body), pace) : body;
}

export function isLaidOut(agent: string | undefined): boolean {
  return READ_BY_PEOPLE.test(agent ?? "");
}
