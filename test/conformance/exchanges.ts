import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { type Fields, isObject, type Json } from "../../src/json.ts";
import type { Kind } from "../../src/kinds/contract/kind.ts";
import { joinObserved, type Observed, observe, type Sighting } from "../../src/mirror/store/observation.ts";
import { findRecording } from "../support/recording.ts";

/** A request, and what GitHub once answered. */
export interface Exchange {
  /** The recording session. Its exchanges are in order, and one state of GitHub goes through them. */
  session: string;
  method: string;
  path: string;
  /** The names of headers are in lower case. */
  requestHeaders: Readonly<Record<string, string>>;
  requestBody: string;
  status: number;
  /** Headers that came more than once are joined by a comma. */
  headers: Readonly<Record<string, string>>;
  /** Undefined: the recording does not have it whole. */
  body: Json | undefined;
}

export const GITHUB = "https://api.github.com";
export const recordings = findRecording("rest-recordings-octokit-rb.json.gz");
const fixtures = new URL("../../node_modules/@octokit/fixtures/scenarios/api.github.com/", import.meta.url);

export function readRecordings(): Exchange[] {
  interface Recorded extends Pick<Exchange, "method" | "path" | "status" | "headers"> {
    source: string;
    body: Json;
    reqHeaders: Record<string, string>;
    reqBody: string | null;
  }
  const recorded = JSON.parse(gunzipSync(readFileSync(recordings.path)).toString("utf8")) as Recorded[];
  return recorded.map(({ source, method, path, status, headers, body, reqHeaders, reqBody }) => ({
    ...{ session: source, method, path, status, headers },
    body: isObject(body) && typeof body.$text === "string" ? withoutMarks(body.$text) : body,
    requestHeaders: reqHeaders,
    requestBody: reqBody ?? "",
  }));
}

/**
 * The JSON of a text in which a mark like `<GITHUB_TEST_ID>` stands in place of a number, or of some digits. Undefined: the
 * recording cut the text off.
 */
function withoutMarks(text: string): Json | undefined {
  const digits = (mark: string) => String(1 + (createHash("sha256").update(mark).digest().readUInt16BE() % 9_000));
  const whole = text.replace(
    /(":\d*)(<[A-Z_]+>)(\d*[,}])/g,
    (_, before, mark, behind) => before + digits(mark) + behind,
  );
  try {
    return JSON.parse(whole) as Json;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

export function readFixtures(): Exchange[] {
  interface Recorded {
    method: string;
    path: string;
    body: Json;
    reqheaders: Record<string, string>;
    status: number;
    response: Json;
    rawHeaders: string[];
  }
  return readdirSync(fixtures).flatMap((session) => {
    const raw = JSON.parse(readFileSync(new URL(`${session}/raw-fixture.json`, fixtures), "utf8")) as Recorded[];
    return raw.map(({ method, path, body, reqheaders, status, response, rawHeaders }) => ({
      session,
      method: method.toUpperCase(),
      path,
      requestHeaders: reqheaders,
      requestBody: typeof body === "string" ? body : JSON.stringify(body),
      status,
      headers: joined(rawHeaders),
      body: response,
    }));
  });
}

/** Headers by their names in lower case, from a flat list of names and values. */
function joined(raw: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (let at = 0; at < raw.length; at += 2) {
    const [name, value] = [(raw[at] ?? "").toLowerCase(), raw[at + 1] ?? ""];
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  return headers;
}

/** The path as a client sends it. The recordings have marks like `<GITHUB_LOGIN>` in place of names. */
export function sentPath(path: string): string {
  return path.replaceAll("<", "%3C").replaceAll(">", "%3E");
}

/** Which resource a path answers with. Others are not mirrored: branches, reactions, events … */
const kinds: [RegExp, Kind][] = [
  [/^\/(user|users\/[^/]+)$/, "user"],
  [/^\/repos\/[^/]+\/[^/]+\/(assignees|subscribers|stargazers)$/, "user"],
  [
    /^\/(repositories\/\d+|repos\/[^/]+\/[^/]+|(user|users\/[^/]+|orgs\/[^/]+)\/(repos|subscriptions)|repos\/[^/]+\/[^/]+\/forks|search\/repositories)$/,
    "repository",
  ],
  [/\/issues\/comments(\/\d+)?$/, "issue_comment"],
  [/\/issues\/\d+\/comments$/, "issue_comment"],
  [/\/pulls\/(\d+\/)?comments(\/\d+)?$/, "review_comment"],
  [/\/pulls\/\d+\/reviews\/\d+\/comments$/, "review_comment"],
  [/\/pulls\/\d+\/reviews(\/\d+(\/events)?)?$/, "review"],
  [/\/pulls(\/\d+(\/requested_reviewers)?)?$/, "pull_request"],
  [/\/labels(\/[^/]+)?$/, "label"],
  [/\/milestones(\/\d+)?$/, "milestone"],
  [/\/issues(\/\d+(\/assignees)?)?$/, "issue"],
  [/^\/search\/users$/, "user"],
];

export function kindOf({ method, path, status, body }: Exchange): Kind | null {
  if (body === undefined || status < 200 || status > 299 || method === "DELETE" || status === 204) return null;
  const bare = path.split("?")[0] as string;
  return kinds.find(([pattern]) => pattern.test(bare))?.[1] ?? null;
}

export function elementsOf(body: Json): Fields[] {
  if (Array.isArray(body)) return body as Fields[];
  const object = body as Fields;
  return Array.isArray(object.items) ? (object.items as Fields[]) : [object];
}

/** Whether an element is what its path promises; a few endpoints answer with something shorter. */
export function isWhole(kind: Kind, element: Fields): boolean {
  if (kind === "user") return typeof element.login === "string" && typeof element.id === "number";
  if (kind === "repository") return typeof element.full_name === "string" && typeof element.private === "boolean";
  return element.url !== undefined || kind === "review";
}

/** The repository that an element belongs to, by the element's own addresses. */
export interface Home {
  id: number;
  fullName: string;
  htmlUrl: string;
}

export function homeOf(kind: Kind, element: Fields, idOf: (fullName: string) => number | undefined): Home {
  const address = String(element.url ?? element.pull_request_url ?? "");
  const fullName =
    kind === "repository" ? String(element.full_name) : (/\/repos\/([^/]+\/[^/]+)/.exec(address)?.[1] ?? "none/none");
  const base = (element.base as Fields | undefined)?.repo as Fields | undefined;
  const repository = element.repository as Fields | undefined;
  const id = base?.id ?? repository?.id ?? element.repository_id ?? idOf(fullName) ?? 4_242;
  return { id: Number(id), fullName, htmlUrl: `https://github.com/${fullName}` };
}

/** What an element shows. An element that embeds its repository brings the one representation of it that is merged. */
export function observedIn(
  kind: Kind,
  element: Fields,
  { api, home, seenAt }: { api: string; home: Home; seenAt: Date },
): Observed {
  const at: Sighting = { api, repository: home, seenAt, read: true };
  const bringsHome = kind === "user" || kind === "repository" || JSON.stringify(element).includes('"full_name"');
  return joinObserved([
    ...(bringsHome ? [] : [observe("repository", plainRepository(home, api), at)]),
    observe(kind, element, at),
  ]);
}

export function plainRepository({ id, fullName, htmlUrl }: Home, api: string): Fields {
  return {
    id,
    name: fullName.split("/")[1] ?? "",
    full_name: fullName,
    private: false,
    owner: null,
    url: `${api}/repos/${fullName}`,
    html_url: htmlUrl,
    issues_url: "",
  };
}
