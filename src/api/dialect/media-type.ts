/** What `Accept` asks for. Pure. */
import { ApiFault } from "./fault.ts";

/** In which forms bodies that people wrote in Markdown are shown. */
export type BodyForm = "raw" | "text" | "html" | "full";

/** `form` is null where none was named; bodies are then raw. */
export interface MediaType {
  form: BodyForm | null;
  /** The whole answer as text that Git knows, where the operation has one. */
  patch: "diff" | "patch" | null;
}

const OURS = /^application\/vnd\.github(?:-[a-z]+)?(?:\.v3)?(?:\.([\w-]+))?(?:\+json)?$/;
const DOCS = "https://docs.github.com/rest/using-the-rest-api/getting-started-with-the-rest-api";
const HELD_BY_SERVICE: ReadonlySet<string> = new Set(["diff", "patch", "sha", "star"]);
const ANY = new Set(["*/*", "application/*", "application/json"]);

/**
 * Several types may be given, separated by commas. The first that says more than "JSON" counts, whatever its weight.
 * @throws ApiFault 415 if we answer in none of them
 */
export function mediaType(accept: string | string[] | undefined): MediaType {
  const { params, isUnknown } = read(accept);
  if (isUnknown) {
    const message = `Unsupported 'Accept' header: '${[accept].flat().join(", ")}'. Must accept 'application/json'.`;
    throw new ApiFault(415, message, { documentationUrl: `${DOCS}#media-types` });
  }
  return {
    form: params.find((param): param is BodyForm => ["raw", "text", "html", "full"].includes(param ?? "")) ?? null,
    patch: params.find((param): param is "diff" | "patch" => param === "diff" || param === "patch") ?? null,
  };
}

/** Whether it asks for what only the service holds: commits, moments of starring, or a type that is not of the dialect. */
export function isServicesAlone(accept: string | string[] | undefined): boolean {
  const { params, isUnknown } = read(accept);
  return isUnknown || params.some((param) => param !== undefined && HELD_BY_SERVICE.has(param));
}

function read(accept: string | string[] | undefined): { params: (string | undefined)[]; isUnknown: boolean } {
  const types = [accept ?? ""]
    .flat()
    .join(",")
    .split(",")
    .map((one) => one.replace(/;.*/s, "").trim().toLowerCase())
    .filter(Boolean);
  const matches = types.map((type) => OURS.exec(type)).filter((match) => match !== null);
  const isUnknown = types.length > 0 && matches.length === 0 && !types.some((type) => ANY.has(type));
  return { params: matches.map(([, param]) => param), isUnknown };
}

/** `X-GitHub-Media-Type`, which says how the request was understood. */
export function mediaTypeHeader({ form }: MediaType): string {
  return form === null ? "github.v3; format=json" : `github.v3; param=${form}; format=json`;
}
