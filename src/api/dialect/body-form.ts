import { type Fields, isObject, type Json } from "../../json.ts";
import type { Pace } from "../../work/pace.ts";
import { mapElements } from "./elements.ts";
import type { MarkdownRenderer } from "./markdown-renderer.ts";
import type { BodyForm } from "./protocol.ts";
import type { Rendered, TextHome } from "./rendered.ts";

/**
 * An answer's JSON with the bodies of its issues, pull requests, comments and reviews in the form that was asked for.
 * `isFinal`: a later answer would be the same.
 */
export async function inForm(
  json: Buffer,
  form: BodyForm | null,
  renderer: Pick<MarkdownRenderer, "allowance" | "render">,
  pace: Pace,
): Promise<{ body: Buffer; isFinal: boolean }> {
  if (form === null || form === "raw" || !json.includes('"body":')) return { body: json, isFinal: true };
  const left = renderer.allowance();
  let areFinal = true;
  const body = await mapElements(json, pace, async (one) => {
    if (!isWritten(one)) return JSON.stringify(one);
    const { shown, isFinal } = await renderer.render([{ text: bodyIn(one), home: textHome(one) }], left);
    areFinal &&= isFinal;
    return JSON.stringify(withForms(one, form, shown[0]));
  });
  return { body, isFinal: areFinal };
}

/** Whether people wrote a text of this. */
function isWritten(one: Json): one is Fields {
  return isObject(one) && "body" in one && typeof one.html_url === "string";
}

/**
 * Puts the other forms in place of `body`, or beside it. A null body is empty in them (GitHub's OpenAPI: never null).
 */
function withForms(one: Fields, form: Exclude<BodyForm, "raw">, rendered: Rendered | undefined): Fields {
  const shown: Fields = {};
  for (const [key, value] of Object.entries(one)) {
    const isBody = key === "body";
    if (isBody && form !== "text") shown.body_html = rendered?.html ?? "";
    if (isBody && form !== "html") shown.body_text = rendered?.text ?? "";
    if (!isBody || form === "full") shown[key] = value;
  }
  return shown;
}

function bodyIn({ body }: Fields): string {
  return typeof body === "string" ? body : "";
}

function textHome({ html_url: page }: Fields): TextHome | null {
  const [, pages, repository] = /^(https?:\/\/.+)\/([^/]+\/[^/]+)\/(?:issues|pull)\/\d+/.exec(String(page)) ?? [];
  return pages && repository ? { pages, repository } : null;
}
