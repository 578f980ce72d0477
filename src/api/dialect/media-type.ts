import { ApiFault } from "./fault.ts";

// The form and the version of an answer, as the request's headers ask for them. Pure.

/** The forms in which bodies are shown that people wrote in Markdown. */
export type BodyForm = "raw" | "text" | "html" | "full";

/** The form of an answer. `form` is null if none was named; bodies are then raw. */
export interface MediaType {
  form: BodyForm | null;
  /** Whether the whole answer is a text that Git knows. Only some operations have one. */
  patch: "diff" | "patch" | null;
}

const OURS = /^application\/vnd\.github(?:-[a-z]+)?(?:\.v3)?(?:\.([\w-]+))?(?:\+json)?$/;
const DOCS = "https://docs.github.com/rest/using-the-rest-api/getting-started-with-the-rest-api";
const HELD_BY_SERVICE: ReadonlySet<string> = new Set(["diff", "patch", "sha", "star"]);
const ANY = new Set(["*/*", "application/*", "application/json"]);

/** An `Accept` header as it was read. */
export interface Accepted extends MediaType {
  /** Whether it asks for what only the service holds: commits, times of starring, or types that we do not know. */
  isServicesAlone: boolean;
  /** Whether it names no type that we know. */
  isUnknown: boolean;
}

/**
 * Several types may be given, separated by commas. The first that says more than "JSON" counts, whatever its weight.
 */
export function readAccept(accept: string | undefined = ""): Accepted {
  const types = accept.split(",").map((one) => one.replace(/;.*/s, "").trim().toLowerCase());
  const read: Accepted = { form: null, patch: null, isServicesAlone: false, isUnknown: types.some(Boolean) };
  for (const type of types) {
    const match = OURS.exec(type);
    if (match || ANY.has(type)) read.isUnknown = false;
    const param = match?.[1];
    if (param === undefined) continue;
    if (isBodyForm(param)) read.form ??= param;
    if (param === "diff" || param === "patch") read.patch ??= param;
    if (HELD_BY_SERVICE.has(param)) read.isServicesAlone = true;
  }
  read.isServicesAlone ||= read.isUnknown;
  return read;
}

/** The media type of the answer. @throws ApiFault 415 if we answer in none of the accepted types */
export function mediaType({ form, patch, isUnknown }: Accepted, accept: string | undefined): MediaType {
  if (!isUnknown) return { form, patch };
  const message = `Unsupported 'Accept' header: '${accept}'. Must accept 'application/json'.`;
  throw new ApiFault(415, message, { documentationUrl: `${DOCS}#media-types` });
}

function isBodyForm(param: string): param is BodyForm {
  return param === "raw" || param === "text" || param === "html" || param === "full";
}

/** The header `X-GitHub-Media-Type`, which says how the request was understood. */
export function mediaTypeHeader({ form }: MediaType): string {
  return form === null ? "github.v3; format=json" : `github.v3; param=${form}; format=json`;
}

/** The versions of the REST dialect, newest first. GitHub docs: the older one is supported until 2028-03-10. */
export const API_VERSIONS = ["2026-03-10", "2022-11-28"] as const;
export type ApiVersion = (typeof API_VERSIONS)[number];

const [newest, oldest] = API_VERSIONS;

/**
 * The version that `X-GitHub-Api-Version` asks for, or the older version without this header.
 * @throws ApiFault 400; the service checks this before anything else
 */
export function apiVersion(header: string | string[] | undefined): ApiVersion {
  if (header === undefined) return oldest;
  const asked = String(header);
  const version = API_VERSIONS.find((candidate) => candidate === asked);
  if (version) return version;
  throw new ApiFault(400, "Bad Request", {
    errors: `The version you specified in the "X-GitHub-API-Version" request header, "${asked}", is not a supported version. The following versions are currently supported: "${newest}" (most recent) and "${oldest}".`,
    documentationUrl: "https://docs.github.com/rest/about-the-rest-api/api-versions",
  });
}
