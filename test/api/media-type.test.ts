import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BoundedMarkdown } from "../../src/api/dialect/markdown.ts";
import { MarkdownRenderer } from "../../src/api/dialect/markdown-renderer.ts";
import { plainTextOf, unformatted } from "../../src/api/dialect/rendered.ts";
import { Pace } from "../../src/work/pace.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

const home = { pages: "https://github.com", repository: "octo/demo" };
const markdown = new BoundedMarkdown();
const html = (text: string) => (markdown.render(text, home, 30_000) ?? unformatted(text)).html;

describe("Markdown", () => {
  test.each([
    ["**bold** ~~gone~~", "<p><strong>bold</strong> <del>gone</del></p>"],
    ["one\ntwo", "<p>one<br />two</p>"],
    ["# Title", "<h1>Title</h1>"],
    ["`a < b`", "<p><code>a &lt; b</code></p>"],
    ["[x](https://example.com?a=1&b=2)", '<p><a href="https://example.com?a=1&amp;b=2" rel="nofollow">x</a></p>'],
    [
      "| a |\n|---|\n| b |",
      "<table>\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody><tr>\n<td>b</td>\n</tr>\n</tbody></table>",
    ],
    ["- [x] done", '<ul>\n<li><input checked disabled type="checkbox" /> done</li>\n</ul>'],
    [
      "see #12",
      '<p>see <a class="issue-link" href="https://github.com/octo/demo/issues/12" rel="nofollow">#12</a></p>',
    ],
    [
      "in other/place#7, @octo-cat!",
      '<p>in <a class="issue-link" href="https://github.com/other/place/issues/7" rel="nofollow">other/place#7</a>, <a class="user-mention" href="https://github.com/octo-cat" rel="nofollow">@octo-cat</a>!</p>',
    ],
    ["`@code #1` and a@b.c", '<p><code>@code #1</code> and <a href="mailto:a@b.c" rel="nofollow">a@b.c</a></p>'],
    ["[to @octo #1](https://a.b)", '<p><a href="https://a.b" rel="nofollow">to @octo #1</a></p>'],
    ["a &amp; b", "<p>a &amp; b</p>"],
    ["", ""],
  ])("%s", (text, expected) => {
    expect(html(text)).toBe(expected);
  });

  // Each is a way in which others were broken into: OWASP's filter evasion, marked's and sanitisers' own histories.
  test.each([
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "<svg/onload=alert(1)>",
    "<svg><animate onbegin=alert(1) attributeName=x></svg>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java&#115;cript:alert(1))",
    "[x](&#x6A;avascript:alert(1))",
    "[x](\u0001javascript:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](vbscript:msgbox(1))",
    "![x](javascript:alert(1))",
    '![x](https://a.b/"onerror="alert(1))',
    '!["onerror=alert(1)//](x)',
    '[x](https://a.b "\\"onmouseover=alert(1)//")',
    '<a href="javascript:alert(1)">x</a>',
    '<a href=" &#14; javascript:alert(1)">x</a>',
    "<iframe src=https://evil.example></iframe>",
    "<object data=x></object><embed src=x>",
    "<form action=//evil.example><input name=p><button>go</button></form>",
    "<style>*{background:url(//evil.example)}</style>",
    '<p style="background:url(//evil.example)" class="btn">x</p>',
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    '<math><mtext></mtext><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    "<details open ontoggle=alert(1)>",
    "<!--><img src=x onerror=alert(1)>-->",
    '```js"><script>alert(1)</script>\nx\n```',
    '@octo"><script>alert(1)</script>',
    "<xmp><img src=x onerror=alert(1)></xmp>",
    '<a href="//evil.example" target=_blank onclick=alert(1)>x</a>',
    "<input type=image src=x onerror=alert(1)>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
  ])("lets nothing in: %s", (text) => {
    const shown = html(text);
    expect(harmful(shown), shown).toEqual([]);
    expect(plainTextOf(shown)).not.toMatch(/&(lt|gt|quot);/);
  });

  test.each([
    ["nested quotes", ">".repeat(60_000)],
    ["nested lists", "- ".repeat(30_000)],
    ["brackets", "[".repeat(65_000)],
    ["unclosed links", "[a](".repeat(16_000)],
    ["emphasis", "*a_ ".repeat(16_000)],
    ["stars", "*".repeat(65_000)],
    ["tags", "<a ".repeat(20_000)],
    ["comments", "<!--".repeat(16_000)],
    ["backticks", "`a``".repeat(16_000)],
    ["entities", "&#0;".repeat(16_000)],
    ["table", `|${"a|".repeat(200)}\n|${"-|".repeat(200)}\n${`|${"a|".repeat(200)}\n`.repeat(150)}`],
    ["names", "@a#1 ".repeat(13_000)],
    ["blanks", `a${" ".repeat(65_000)}b`],
    ["nested tags", "<div>".repeat(13_000)],
    ["autolinks", "www.".repeat(16_000)],
    ["setext", "a\n".repeat(32_000)],
  ])("ends in bounded time: %s", (_name, text) => {
    const startedAt = performance.now();
    const { html: shown } = markdown.render(text, home, 200) ?? unformatted(text);
    // The budget is a fraction of a second; the rest is for a machine that is busy.
    expect(performance.now() - startedAt).toBeLessThan(60_000);
    expect(harmful(shown)).toEqual([]);
  });

  test("a text longer than the service takes, 65,536 characters, is shown as it was written", async () => {
    const renderer = new MarkdownRenderer(new Pace(), 30_000);
    const render = async (text: string) => (await renderer.render([{ text: `*b* ${text}`, home }])).shown[0]?.html;
    // A character may be two units of a string.
    for (const character of ["x", "😀"]) {
      const line = `${character.repeat(63)}\n`;
      expect(await render(line.repeat(1_024).slice(0, -character.length * 4))).toContain("<em>b</em>");
      expect(await render(line.repeat(1_024))).toMatch(/^<pre>\*b\* /);
    }
    await renderer.close();
  });

  test("what takes longer than its budget is shown as it was written and not tried again; what had no time is rendered the next time", async () => {
    const renderer = new MarkdownRenderer(new Pace(), 500);
    const [slow, other] = [
      { text: SLOW, home },
      { text: "*b*", home },
    ];
    const first = await renderer.render([slow, other]);
    expect(first.shown.map(({ html: shown }) => shown)).toEqual([`<pre>${SLOW}</pre>`, "<pre>*b*</pre>"]);
    expect(first.isFinal).toBe(false);
    const second = await renderer.render([slow, other]);
    expect(second.shown.map(({ html: shown }) => shown)).toEqual([`<pre>${SLOW}</pre>`, "<p><em>b</em></p>"]);
    expect(second.isFinal).toBe(true);
    await renderer.close();
  });

  test("a text that takes long holds up nothing else", async () => {
    const renderer = new MarkdownRenderer(new Pace(), 1_000);
    let turns = 0;
    const counting = setInterval(() => turns++, 1);
    await renderer.render([{ text: SLOW, home }]);
    clearInterval(counting);
    expect(turns).toBeGreaterThan(20);
    await renderer.close();
  });
});

/** Emphasis that might begin and end at each letter. */
const SLOW = "_a__a".repeat(13_107);

const TAG = /<\/?([a-z][a-z\d]*)((?:\s+[a-z-]+(?:="[^"<>]*")?)*)\s*\/?>/gi;

/**
 * HTML that could do harm: every tag and attribute that is not known to be harmless, and all text that looks like a
 * tag.
 */
function harmful(shown: string): string[] {
  const found: string[] = [];
  for (const [tag, name = "", attributes = ""] of shown.matchAll(TAG)) {
    if (
      /^(script|iframe|object|embed|form|button|style|base|meta|svg|math|link|noscript|xmp|title|textarea)$/i.test(name)
    )
      found.push(tag);
    for (const [, attribute = "", value = ""] of attributes.matchAll(/([a-z-]+)(?:="([^"]*)")?/gi)) {
      if (/^on|^style$|^target$|^srcdoc$|^formaction$/i.test(attribute)) found.push(tag);
      if (/^(href|src)$/i.test(attribute) && !/^(https?:|mailto:|#|[\w./?%&;=-]*$)/i.test(value)) found.push(tag);
      if (/script:|^data:/i.test(value) && /^(href|src)$/i.test(attribute)) found.push(tag);
    }
  }
  if (/[<>]/.test(shown.replace(TAG, ""))) found.push(`stray: ${shown.replace(TAG, "").slice(0, 100)}`);
  return found;
}

describe("over HTTP", () => {
  let world: ApiWorld;
  let repo: string;
  beforeAll(async () => {
    world = await openApiWorld({ repositories: 1, issues: 20 });
    repo = `/repos/${world.repositories[0]?.fullName}`;
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  const ask = (path: string, accept: string | undefined) => world.get(path, { headers: { accept } });

  test.each(["/issues", "/issues/1", "/pulls?state=all", "/issues/comments", "/pulls/comments"])(
    "%s in each form",
    async (path) => {
      const plain = [(await ask(repo + path, "application/json")).body].flat();
      expect(plain.length).toBeGreaterThan(0);
      for (const [form, keys] of Object.entries({
        raw: ["body"],
        text: ["body_text"],
        html: ["body_html"],
        full: ["body", "body_html", "body_text"],
      })) {
        const answer = await ask(repo + path, `application/vnd.github.${form}+json`);
        expect(answer.headers.get("x-github-media-type")).toBe(`github.v3; param=${form}; format=json`);
        expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
        for (const [index, row] of [answer.body].flat().entries()) {
          const { body, body_html, body_text, ...rest } = row;
          expect(
            Object.keys(row)
              .filter((key) => /^body/.test(key))
              .toSorted(),
          ).toEqual(keys);
          const { body: written, ...others } = plain[index];
          expect(rest).toEqual(others);
          if (form === "full")
            expect([body, typeof body_html, typeof body_text]).toEqual([written, "string", "string"]);
        }
      }
    },
  );

  test("each form has an ETag of its own", async () => {
    const tags = await Promise.all(
      ["application/json", "application/vnd.github.html+json", "application/vnd.github.full+json"].map(async (accept) =>
        (await ask(`${repo}/issues/1`, accept)).headers.get("etag"),
      ),
    );
    expect(new Set(tags).size).toBe(3);
  });

  test.each([
    "",
    "*/*",
    "application/json",
    "application/vnd.github+json",
    "application/vnd.github.v3+json",
    "application/vnd.github.squirrel-girl-preview+json",
    "text/html, */*;q=0.8",
    "application/vnd.github-commitcomment.html+json",
  ])("Accept: %s is answered", async (accept) => {
    expect((await ask(`${repo}/issues/1`, accept)).status).toBe(200);
  });

  test.each(["text/csv", "application/xml, text/html;q=0.9", "application/vnd.gitlab+json"])(
    "Accept: %s is refused with 415",
    async (accept) => {
      const { status, body } = await ask(`${repo}/issues/1`, accept);
      expect(status).toBe(415);
      expect(body).toEqual({
        message: `Unsupported 'Accept' header: '${accept}'. Must accept 'application/json'.`,
        documentation_url:
          "https://docs.github.com/rest/using-the-rest-api/getting-started-with-the-rest-api#media-types",
        status: "415",
      });
    },
  );
});
