// What the process shares with the thread that renders Markdown. The parser and its sanitizer are eighty modules, which
// the thread alone loads.

/** The place of a text: names and numbers in the text link from there. */
export interface TextHome {
  /** The service's pages, without a trailing slash: `https://github.com`. */
  pages: string;
  /** The repository's `owner/name`. */
  repository: string;
}

/** A text as it is shown: with its formatting, and as plain text. */
export interface Rendered {
  html: string;
  text: string;
}

/** A text as it was written, with its Markdown left as plain characters. */
export function unformatted(text: string): Rendered {
  const html = `<pre>${escaped(text)}</pre>`;
  return { html, text: plainTextOf(html) };
}

/** Escapes a text. `plainTextOf` undoes exactly this. */
export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

const BLOCK_END = /<br \/>\n?|<hr \/>|<\/(?:p|h[1-6]|li|tr|pre|blockquote|div|dt|dd|summary|figcaption|caption)>/g;
const TEXT_OF_ENTITY: Readonly<Record<string, string>> = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&" };

/** The text that the HTML shows. Only for HTML that was rendered here: in it `<` and `>` stand for nothing but tags. */
export function plainTextOf(html: string): string {
  return html
    .replace(BLOCK_END, "\n")
    .replace(/<[^>]*>/g, "")
    .replace(/&(?:lt|gt|quot|amp);/g, (entity) => TEXT_OF_ENTITY[entity] ?? entity)
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}
