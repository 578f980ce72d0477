import { sql } from "../../db/sql.ts";
import type { ServedOperation } from "../../src/api/call/operation.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { MIRROR_OPERATIONS } from "../../src/api/operations.ts";
import { type Fields, type Json, objectOf } from "../../src/json.ts";
import type { Kind } from "../../src/kinds/contract/kind.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { type Observed, observe } from "../../src/mirror/store/observation.ts";
import { type Answered, askAt } from "../support/asking.ts";
import { openMirror } from "../support/mirror.ts";
import {
  type Exchange,
  elementsOf,
  GITHUB,
  type Home,
  homeOf,
  isWhole,
  kindOf,
  observedIn,
  plainRepository,
  sentPath,
} from "./exchanges.ts";
import { openReplay } from "./replay.ts";

const served = MIRROR_OPERATIONS.map((one) => ({ method: one.route.method, pattern: patternOf(one) }));

/** Whether the mirror has an operation for the request. */
export function isServed({ method, path }: Exchange): boolean {
  const bare = path.split("?")[0] as string;
  return served.some((one) => one.method === method && one.pattern.test(bare));
}

export function patternOf({ path, route, takesRest }: ServedOperation): RegExp {
  const isBelow = route.run.of === "repository";
  const value = (name: string, isLast: boolean) =>
    name === "id" || name === "number" ? "\\d+" : takesRest && isLast ? ".+" : "[^/]+";
  const below = path === "/" && isBelow ? "" : path;
  const values = below.replace(/:(\w+)($)?/g, (_, name, end) => value(name, end !== undefined));
  return new RegExp(`^${isBelow ? "(/repos/[^/]+/[^/]+|/repositories/\\d+)" : ""}${values}$`);
}

/** Who asked, as far as the recorded answer tells. */
function askerOf({ headers }: Exchange): "anonymous" | "fine-grained" | "classic" | "unknown" {
  if (headers["x-oauth-scopes"] !== undefined) return "classic";
  if (headers["x-accepted-github-permissions"] !== undefined) return "fine-grained";
  return headers["cache-control"]?.startsWith("public") || /^(60|10|5)$/.test(headers["x-ratelimit-limit"] ?? "")
    ? "anonymous"
    : "unknown";
}

/** What a session's mirror is answered by upstream. */
class Upstream {
  readonly #session: readonly Exchange[];
  /** The request that the mirror is asked. */
  #asked: Exchange | null = null;
  #viewer: Fields = {};

  constructor(session: readonly Exchange[]) {
    this.#session = session;
  }

  expect(asked: Exchange, viewer: Fields): void {
    this.#asked = asked;
    this.#viewer = viewer;
  }

  answer: Parameters<typeof openReplay>[0] = ({ method, path, headers, body }) => {
    const [, kind, scopes = ""] = /(ghp|github_pat)_(.*)/.exec(headers.authorization ?? "") ?? [];
    const known = kind === "ghp" ? { "x-oauth-scopes": Buffer.from(scopes, "base64url").toString() } : {};
    if (path === "/user" && kind !== undefined) return { status: 200, headers: known, body: this.#viewer };
    if (path === "/graphql") return { status: 200, body: rights(JSON.parse(body) as Fields) };
    if (this.#asked && method !== "GET" && method === this.#asked.method) {
      const { status, body: written, headers: shown } = this.#asked;
      const kept = Object.entries(shown).filter(([name]) => /^(date|location|content-type)$/.test(name));
      return { status, headers: Object.fromEntries(kept), body: written };
    }
    const recorded = this.#session.find((one) => one.method === "GET" && isRenamed(one, path));
    // What was not recorded is not known to be missing either.
    return recorded ?? { status: 403, body: { message: "Not recorded" } };
  };
}

/** Whether the mirror asks for this by the id of the account. */
function isRenamed({ path, body }: Exchange, asked: string): boolean {
  const { id } = objectOf(body);
  return /^\/(orgs|users)\/[^/]+$/.test(path) && (asked === `/organizations/${id}` || asked === `/user/${id}`);
}

/** What GraphQL tells of repositories to somebody who may do everything in them. */
function rights({ variables }: Fields): Json {
  const all = (node: Fields) => (objectOf(variables).ids as string[]).map(() => node);
  return {
    data: {
      metadata: all({ viewerPermission: "ADMIN" }),
      issues: all({ issues: { totalCount: 0 } }),
      pulls: all({ pullRequests: { totalCount: 0 } }),
    },
  };
}

/** A mirror that holds what a recorded session has shown so far. */
export interface SessionMirror extends AsyncDisposable {
  /** Has the mirror see an answer. */
  see(exchange: Exchange): Promise<void>;
  /** The same request to the mirror, with GitHub's address in the answer. */
  ask(exchange: Exchange): Promise<Answered>;
}

export async function openSessionMirror(session: readonly Exchange[]): Promise<SessionMirror> {
  await using opening = new AsyncDisposableStack();
  const upstream = new Upstream(session);
  const replay = opening.use(await openReplay(upstream.answer));
  // A clock that leaps at each look: the client keeps writes a second apart, which nobody here waits for.
  let leaps = 0;
  const clock = { now: () => new Date(Date.now() + 2_000 * leaps++) };
  const mirror = opening.use(await openMirror({ upstream: replay.url, clock }));
  const { ctx } = mirror;
  const idOf = repositoryIds(session);
  const merge = (observed: Observed) => ctx.db.transaction((tx) => mergeObserved(tx, observed));
  const before = { api: GITHUB, seenAt: new Date(0), read: true };
  const isKnown = async (table: string, home: Home, number?: number) => {
    const key = number === undefined ? sql`id = ${home.id}` : sql`repository_id = ${home.id} and number = ${number}`;
    return (await ctx.db.count(sql`select from ${sql.identifier(table)} where ${key}`)) > 0;
  };

  /** What a request presupposes, and the recording need not show: its repository, its issue or pull request. */
  const presuppose = async (exchange: Exchange) => {
    const named = /^\/repos\/([^/]+\/[^/?]+)(?:\/(issues|pulls)\/(\d+)(?=(\/)?))?/.exec(exchange.path);
    if (!named || exchange.status === 404 || exchange.status === 301) return;
    const [, fullName = "", list, number, below] = named;
    const home: Home = { id: idOf(fullName), fullName, htmlUrl: `https://github.com/${fullName}` };
    const at = { ...before, repository: home };
    if (!(await isKnown("repositories", home))) await merge(observe("repository", plainRepository(home, GITHUB), at));
    if (list === undefined || (exchange.method === "GET" && !below)) return;
    const [kind, table]: [Kind, string] = list === "issues" ? ["issue", "issues"] : ["pull_request", "pull_requests"];
    // The answer to a write shows the id; until then the other side alone was seen, as in a webhook.
    const isRead = exchange.method === "GET";
    const issue = {
      ...plainIssue(`${GITHUB}/repos/${fullName}/${list}/${number}`),
      ...(isRead && { id: Number(number) }),
    };
    if (!(await isKnown(table, home, Number(number)))) await merge(observe(kind, issue, { ...at, read: isRead }));
    const review = /\/reviews\/(\d+)\//.exec(exchange.path)?.[1];
    if (review !== undefined) await merge(observe("review", plainReview(fullName, number, review), at));
  };

  const see = async (exchange: Exchange) => {
    const kind = kindOf(exchange);
    const isShown = exchange.method === "GET" || !isServed(exchange);
    const elements = kind && isShown ? elementsOf(exchange.body as Json).filter((one) => isWhole(kind, one)) : [];
    for (const element of elements) {
      const home = homeOf(kind as Kind, element, idOf);
      await merge(observedIn(kind as Kind, element, { api: GITHUB, home, seenAt: clock.now() }));
    }
    await presuppose(exchange);
    const account = /^\/orgs\/([^/]+)/.exec(exchange.path)?.[1];
    if (account !== undefined && exchange.method === "GET")
      await merge(observe("user", organization(account, exchange.body), before));
    await ctx.db.query(sql`
      insert into repository_syncs (repository_id, state, added_at, backfilled_at)
        select id, 'live', now() - interval '1 minute', now() from repositories on conflict do nothing`);
  };

  const askAs = async (exchange: Exchange, as: "own" | "recorded") => {
    const { method, path, requestHeaders, requestBody, headers, status } = exchange;
    const viewer = viewerOf(exchange, session);
    upstream.expect(exchange, viewer);
    if (!(await ctx.db.count(sql`select from users where id = ${Number(viewer.id)}`)))
      await merge(observe("user", viewer, before));
    const token =
      askerOf(exchange) === "anonymous"
        ? null
        : as === "own"
          ? await createApiToken(ctx, { userId: Number(viewer.id), canWrite: true })
          : headers["x-oauth-scopes"] === undefined
            ? "github_pat_of_somebody"
            : `ghp_${Buffer.from(headers["x-oauth-scopes"]).toString("base64url")}`;
    const answered = await askAt(mirror.url, method, sentPath(path), {
      token,
      headers: {
        accept: requestHeaders.accept,
        "accept-encoding": requestHeaders["user-agent"]?.includes("Ruby") ? "gzip" : "identity",
        ...(requestHeaders["user-agent"] && { "user-agent": requestHeaders["user-agent"] }),
      },
      // The recordings of octokit.rb have no bodies of requests. Upstream alone judges them.
      ...(method === "GET" || (requestBody === "" && status === 204) ? {} : { body: requestBody || "{}" }),
    });
    const asGitHub = (text: string) => text.replaceAll(mirror.url, GITHUB).replaceAll(replay.url, GITHUB);
    const text = asGitHub(answered.text);
    const shown = [...answered.headers].map(([name, value]): [string, string] => [name, asGitHub(value)]);
    return { ...answered, text, headers: new Headers(shown), body: text === "" ? null : JSON.parse(text) };
  };
  const ask: SessionMirror["ask"] = async (exchange) => {
    // Upstream shows people more of themselves than Tain's own tokens see.
    if (exchange.path === "/user") return askAs(exchange, "recorded");
    const answered = await askAs(exchange, "own");
    if (askerOf(exchange) !== "classic") return answered;
    // With Tain's own tokens the mirror shows all that it holds, but these have no scopes.
    const { headers } = await askAs(exchange, "recorded");
    answered.headers.delete("x-accepted-github-permissions");
    for (const name of ["x-oauth-scopes", "x-accepted-oauth-scopes"])
      answered.headers.set(name, headers.get(name) ?? "none");
    return answered;
  };
  const all = opening.move();
  return { see, ask, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** The ids of repositories by their names: recorded ones, or others. */
function repositoryIds(session: readonly Exchange[]): (fullName: string) => number {
  const recorded = new Map<string, number>();
  for (const { path, body, headers } of session) {
    const { full_name, id } = objectOf(body);
    if (typeof full_name === "string") recorded.set(full_name, Number(id));
    const name = /^\/repos\/([^/]+\/[^/?]+)/.exec(path)?.[1];
    const linked = /\/repositories\/(\d+)/.exec(headers.link ?? headers.location ?? "")?.[1];
    if (name !== undefined && linked !== undefined) recorded.set(name, Number(linked));
  }
  return (fullName) => recorded.getOrInsertComputed(fullName, () => 4_242 + recorded.size);
}

/** Whose token asked: the account that is shown, whose repositories are, or anybody's. */
function viewerOf({ path, body }: Exchange, session: readonly Exchange[]): Fields {
  const owner = (one: Json | undefined) =>
    elementsOf(one ?? {}).find((each) => objectOf(each.owner).type === "User")?.owner;
  if (path === "/user") return objectOf(body);
  const known = owner(body) ?? session.map((one) => owner(one.body)).find(Boolean);
  return { login: "somebody", id: 1, type: "User", followers_url: "", ...objectOf(known) };
}

const LONG_AGO = "2000-01-01T00:00:00Z";

/** As little of an issue or pull request as can be stored. */
function plainIssue(url: string): Fields {
  const number = Number(url.split("/").at(-1));
  const common = { url, number, title: "Not recorded", user: null, state: "open" };
  const ends = url.includes("/pulls/") ? { head: {}, base: {} } : {};
  return { ...common, created_at: LONG_AGO, updated_at: LONG_AGO, body: null, ...ends };
}

function plainReview(fullName: string, number: string | undefined, id: string): Fields {
  const pull_request_url = `${GITHUB}/repos/${fullName}/pulls/${number}`;
  return { id: Number(id), user: null, body: "", state: "COMMENTED", pull_request_url };
}

/** An organisation as it is embedded in its repositories. */
function organization(login: string, shown: Json | undefined): Fields {
  const [first] = elementsOf(shown ?? {});
  const { id, node_id, avatar_url } = { ...objectOf(first?.owner), ...objectOf(shown) } as Fields;
  const known = Object.fromEntries(Object.entries({ node_id, avatar_url }).filter((one) => one[1] !== undefined));
  return {
    login,
    id: id ?? 77,
    ...(known as Fields),
    followers_url: `${GITHUB}/users/${login}/followers`,
    type: "Organization",
  };
}
