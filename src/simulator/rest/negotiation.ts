import type { ApiVersion, BodyForm } from "../views/view.ts";

const VERSIONS: readonly ApiVersion[] = ["2022-11-28", "2026-03-10"];

/** Undefined for versions that the service does not have. */
export function versionOf(header: string | undefined): ApiVersion | undefined {
  if (header === undefined || header === "") return "2022-11-28";
  return VERSIONS.find((version) => version === header);
}

export function unsupportedVersion(header: string) {
  return {
    message: "Bad Request",
    errors:
      `The version you specified in the "X-GitHub-API-Version" request header, "${header}", is not a supported version. ` +
      'The following versions are currently supported: "2026-03-10" (most recent) and "2022-11-28".',
    documentation_url: "https://docs.github.com/rest",
    status: "400",
  };
}

/** What `Accept` asks of bodies; several types may be comma separated, the first that says something counts. */
export function mediaOf(accept: string | undefined): {
  readonly bodyForm: BodyForm;
  readonly file: "diff" | "patch" | null;
  readonly name: string;
} {
  const [matching] = /\.text-match(?=\+json|\s*(?:[;,]|$))/.exec(accept ?? "") ?? [];
  for (const part of (accept ?? "").split(",")) {
    const type =
      /^application\/vnd\.github(?:\.v3|-commitcomment|\.v3-commitcomment)?\.(raw|text|html|full|diff|patch)(?:\+json)?$/.exec(
        part.split(";")[0]?.trim() ?? "",
      )?.[1];
    if (type === "diff" || type === "patch") return { bodyForm: "raw", file: type, name: `github.v3; param=${type}` };
    if (type === "raw" || type === "text" || type === "html" || type === "full")
      return { bodyForm: type, file: null, name: `github.v3; param=${matching ? "text-match" : type}; format=json` };
  }
  const name = matching ? "github.v3; param=text-match; format=json" : "github.v3; format=json";
  return { bodyForm: "raw", file: null, name };
}

/**
 * The credential of an `Authorization` header: null when there is none, undefined when it cannot be one. A header of no
 * known scheme was seen to be overlooked (brekkylab/backlot, measured 2026-09).
 */
export function credentialOf(header: string | undefined): string | null | undefined {
  if (header === undefined || header === "") return null;
  const [scheme = "", value = ""] = header.trim().split(/\s+/, 2);
  switch (scheme.toLowerCase()) {
    case "token":
    case "bearer":
      return value || undefined;
    case "basic": {
      const decoded = Buffer.from(value, "base64").toString("utf8");
      const [name = "", password = ""] = decoded.split(/:(.*)/s);
      // The token stands as password, or (with `x-oauth-basic` or nothing there) as name.
      return (password === "" || password === "x-oauth-basic" ? name : password) || undefined;
    }
    default:
      return null;
  }
}
