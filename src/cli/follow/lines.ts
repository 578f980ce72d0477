import { type Fields, objectOf, parseStored, textOf } from "../../json.ts";
import { plain, styled } from "../terminal/output.ts";

/** A line of the feed. */
export interface FeedLine {
  /** The id after which a reader continues. */
  id: string;
  kind: "event" | "bookmark" | "end";
  /** The line as it was received. */
  text: string;
  fields: Fields;
}

/**
 * The lines of the feed, as they arrive. `heard` is called with each piece.
 * @throws SyntaxError for a line that is no JSON; the connection's error
 */
export async function* linesOf({ body }: Response, heard: () => void = () => {}): AsyncGenerator<FeedLine> {
  let text = "";
  for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    heard();
    text += part;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      yield readLine(text.slice(0, end));
      text = text.slice(end + 1);
    }
  }
}

/** Pure. @throws SyntaxError */
function readLine(text: string): FeedLine {
  const fields = parseStored<Fields>(text);
  const type = textOf(fields.type);
  const kind = type === "tain.bookmark" ? "bookmark" : type === "tain.end" ? "end" : "event";
  return { id: textOf(fields.id) ?? "", kind, text, fields };
}

/** The reason for the stream's end, from its last line. Pure. */
export function endReason({ fields }: FeedLine): string {
  return textOf(objectOf(fields.data).message) ?? "the stream has ended";
}

/** An event for a person: `14:03:27 octo/demo issues.opened issues/7 A title, by monalisa`. Pure but for colours. */
export function eventLine({ fields }: FeedLine): string {
  const data = objectOf(fields.data);
  const time = new Date(textOf(fields.time) ?? 0).toTimeString().slice(0, 8);
  const where = textOf(objectOf(data.repository).full_name) ?? textOf(fields.source) ?? "";
  const what = (textOf(fields.type) ?? "").replace(/^com\.github\./, "");
  const titles = [data.issue, data.pull_request].map((one) => textOf(objectOf(one).title));
  const title = titles.find((one) => one !== null);
  const sender = textOf(objectOf(data.sender).login);
  const parts: [text: string | null, style: Parameters<typeof styled>[0] | null][] = [
    [time, "dim"],
    [where, null],
    [what, "cyan"],
    [textOf(fields.subject), null],
    [title == null ? null : `"${title}"`, null],
    [sender === null ? null : `by ${sender}`, null],
  ];
  return parts
    .flatMap(([text, style]) => {
      if (text === null) return [];
      const safe = plain(text).replaceAll("\n", " ");
      return style === null ? safe : styled(style, safe);
    })
    .join(" ");
}
