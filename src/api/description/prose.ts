import { escapedHtml } from "../../http/html.ts";
/** The HTML of a description's Markdown. Code, links and bold are marked up; the rest stays text. Pure. */
export function inline(markdown: string): string {
  return escapedHtml(markdown)
    .split(/(`[^`]*`)/)
    .map((part, at) => (at % 2 === 1 ? `<code>${part.slice(1, -1)}</code>` : emphasised(part)))
    .join("");
}

function emphasised(text: string): string {
  return text
    .replace(/&quot;(\[[^\]]+\]\([^)\s]+\))&quot;/g, "$1")
    .replace(
      /\[([^\]]+)\]\((\/|https:\/\/)([^)\s]*)\)/g,
      (_all, words: string, start: string, rest: string) =>
        `<a href="${start === "/" ? "https://docs.github.com/" : start}${rest}" rel="noreferrer">${words}</a>`,
    )
    .replace(/\*\*([^*]+)\*\*/g, "<strong>$1</strong>")
    .replace(/^&gt; \[!\w+\]\s*/gm, "")
    .replace(/^&gt; /gm, "");
}
