import { ApiFault } from "./fault.ts";

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
