import { createContext, Script } from "node:vm";
import { Marked } from "marked";
import sanitizeHtml from "sanitize-html";
import { escaped, plainTextOf, type Rendered, type TextHome } from "./rendered.ts";

/** Renders Markdown as safe HTML. It blocks, and some texts are made to take long: see `markdown-renderer.ts`. */
export class BoundedMarkdown {
  readonly #work = new BoundedWork();

  /** The rendered text. Null: rendering would take longer than the budget. */
  render(text: string, home: TextHome | null, budgetMs: number): Rendered | null {
    const html = this.#work.inTime(() => htmlOf(text, home), budgetMs);
    return html === null ? null : { html, text: plainTextOf(html) };
  }
}

/** Does work that blocks, and interrupts it when it takes too long. Only a script of its own can be interrupted. */
class BoundedWork {
  readonly #sandbox: { work: (() => string) | null } = { work: null };
  readonly #context = createContext(this.#sandbox);
  readonly #call = new Script("work()");

  /** The result of the work. Null: it took longer. */
  inTime(work: () => string, ms: number): string | null {
    if (ms < 1) return null;
    this.#sandbox.work = work;
    try {
      return this.#call.runInContext(this.#context, { timeout: Math.ceil(ms) });
    } catch (error) {
      // Deep nesting overflows the stack of the parser, which is another way of being too much.
      if (error instanceof RangeError || isTimeout(error)) return null;
      throw error;
    } finally {
      this.#sandbox.work = null;
    }
  }
}

/** Whether the error is a timeout. It comes from another realm, so it has none of our classes. */
function isTimeout(error: unknown): boolean {
  return (
    typeof error === "object" && error !== null && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT"
  );
}

function htmlOf(text: string, home: TextHome | null): string {
  return sanitizeHtml(parserFor(home).parse(text, { async: false }), ALLOWED).trimEnd();
}

/**
 * The parser for texts of this home. Like the service, it breaks lines where the writers of issues and comments did.
 */
function parserFor(home: TextHome | null): Marked {
  let linkDepth = 0;
  const marked = new Marked({ gfm: true, breaks: true });
  marked.use({
    renderer: {
      link(token) {
        linkDepth++;
        try {
          const inner = this.parser.parseInline(token.tokens);
          const title = token.title ? ` title="${escapedOnce(token.title)}"` : "";
          return `<a href="${escapedOnce(token.href)}"${title}>${inner}</a>`;
        } finally {
          linkDepth--;
        }
      },
      text(token) {
        if ("tokens" in token && token.tokens) return this.parser.parseInline(token.tokens);
        const inner = "escaped" in token && token.escaped ? token.text : escapedOnce(token.text);
        return home && linkDepth === 0 ? linked(inner, home) : inner;
      },
    },
  });
  return marked;
}

const MENTION = /(?<![\w/@.&#-])@([a-z\d](?:[a-z\d-]{0,37}[a-z\d])?)(?![\w-])/gi;
const ISSUE_REFERENCE = /(?<![\w/&#.-])([\w-]{1,39}\/[\w.-]{1,100})?#(\d{1,9})(?!\w)/g;

/** Links `@login`, `#12` and `owner/name#12`. Whether there is such a person or issue is not looked up. */
function linked(html: string, { pages, repository }: TextHome): string {
  return html
    .replace(ISSUE_REFERENCE, (text, other: string | undefined, number: string) => {
      const href = `${pages}/${other ?? repository}/issues/${number}`;
      return `<a class="issue-link" href="${escaped(href)}">${text}</a>`;
    })
    .replace(
      MENTION,
      (text, login: string) => `<a class="user-mention" href="${escaped(`${pages}/${login}`)}">${text}</a>`,
    );
}

/** Escapes a text, but leaves entities that were written as they are. */
function escapedOnce(text: string): string {
  return text
    .replace(/&(?!(?:#\d{1,7}|#x[\da-f]{1,6}|\w+);)/gi, "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

// The elements that the service keeps, by github/markup. All others lose their tags and keep their text.
const ALLOWED: sanitizeHtml.IOptions = {
  allowedTags:
    "h1 h2 h3 h4 h5 h6 br b i strong em a pre code img tt div ins del sup sub p ol ul table thead tbody tfoot blockquote dl dt dd kbd q samp var hr ruby rt rp li tr td th s strike summary details caption figure figcaption abbr bdo cite dfn mark small span time wbr input".split(
      " ",
    ),
  allowedAttributes: {
    a: ["href", "title", "rel", "class"],
    img: ["src", "alt", "title", "width", "height", "align"],
    input: ["type", "checked", "disabled"],
    ol: ["start"],
    td: ["align"],
    th: ["align"],
    p: ["align"],
    div: ["align"],
    details: ["open"],
    time: ["datetime"],
  },
  allowedClasses: { a: ["user-mention", "issue-link"] },
  allowedSchemes: ["http", "https", "mailto"],
  allowedSchemesByTag: { img: ["http", "https"] },
  allowProtocolRelative: false,
  nestingLimit: 100,
  exclusiveFilter: ({ tag, attribs }) => tag === "input" && attribs.type !== "checkbox",
  transformTags: {
    a: (tagName, attribs) => ({ tagName, attribs: { ...attribs, rel: "nofollow" } }),
    // A task's box shows a state; nobody can tick it here.
    input: (tagName, attribs) => ({ tagName, attribs: { ...attribs, disabled: "" } }),
  },
};
