import { type Fields, isObject, type Json } from "../../json.ts";
import type { Pace } from "../../operations/pace.ts";
import type { Rendered, TextHome } from "./markdown.ts";
import type { MarkdownRenderer } from "./markdown-renderer.ts";
import type { BodyForm } from "./media-type.ts";

/**
 * An answer's JSON with the bodies of its issues, pull requests, comments and reviews in the form that was asked for.
 * `isFinal`: it would be the same another time.
 */
export async function inForm(
  json: string,
  form: BodyForm | null,
  renderer: Pick<MarkdownRenderer, "render">,
  pace: Pace,
): Promise<{ body: string; isFinal: boolean }> {
  if (form === null || form === "raw" || !json.includes('"body":')) return { body: json, isFinal: true };
  const answer: Json = JSON.parse(json);
  const people = written(answer);
  const { shown, isFinal } = await renderer.render(people.map((one) => ({ text: textIn(one), home: homeOf(one) })));
  const forms = new Map(people.map((one, index) => [one, withForms(one, form, shown[index])]));
  if (!Array.isArray(answer)) return { body: JSON.stringify(replaced(answer, forms)), isFinal };
  let body = "[";
  for (const [at, one] of answer.entries()) {
    if (pace.isOver()) await pace.turn();
    body += (at > 0 ? "," : "") + JSON.stringify(replaced(one, forms));
  }
  return { body: `${body}]`, isFinal };
}

/** What people wrote: the answer itself, the elements of a list, or what a search found. */
function written(answer: Json): Fields[] {
  return elements(answer).filter((one) => "body" in one && typeof one.html_url === "string");
}

function elements(answer: Json): Fields[] {
  if (Array.isArray(answer)) return answer.filter(isObject);
  if (!isObject(answer)) return [];
  return Array.isArray(answer.items) ? answer.items.filter(isObject) : [answer];
}

function replaced(answer: Json, forms: Map<Fields, Fields>): Json {
  const of = (one: Json) => (isObject(one) ? (forms.get(one) ?? one) : one);
  if (isObject(answer) && Array.isArray(answer.items)) return { ...answer, items: answer.items.map(of) };
  return of(answer);
}

/** In place of `body`, or beside it. What has no body has an empty one in the other forms (GitHub's OpenAPI: never null). */
function withForms(one: Fields, form: Exclude<BodyForm, "raw">, rendered: Rendered | undefined): Fields {
  const shown: Fields = {};
  for (const [key, value] of Object.entries(one)) {
    if (key !== "body" || form === "full") shown[key] = value;
    if (key !== "body") continue;
    if (form !== "text") shown.body_html = rendered?.html ?? "";
    if (form !== "html") shown.body_text = rendered?.text ?? "";
  }
  return shown;
}

function textIn({ body }: Fields): string {
  return typeof body === "string" ? body : "";
}

function homeOf({ html_url: page }: Fields): TextHome | null {
  const [, pages, repository] = /^(https?:\/\/.+)\/([^/]+\/[^/]+)\/(?:issues|pull)\/\d+/.exec(String(page)) ?? [];
  return pages && repository ? { pages, repository } : null;
}
