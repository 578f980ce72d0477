import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import type { Fields, Json } from "../../src/json.ts";
import { renderDocuments } from "../../src/mirror/render/rendering.ts";
import { SharedRows } from "../../src/mirror/render/shared-rows.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { joinObserved, observe } from "../../src/mirror/store/observation.ts";
import { type Kind, resourceOf } from "../../src/mirror/store/resource.ts";
import { openMirror } from "../support/mirror.ts";
import { findRecording } from "../support/recording.ts";

/** What GitHub once answered: read by the client from a server that replays it, stored, and served back. */
interface Exchange {
  name: string;
  method: string;
  path: string;
  status: number;
  body: Json;
}

const GITHUB = "https://api.github.com";
const recordings = findRecording("rest-recordings-octokit-rb.json.gz");
const fixtures = new URL("../../node_modules/@octokit/fixtures/scenarios/api.github.com/", import.meta.url);

function readRecordings(): Exchange[] {
  interface Recorded {
    source: string;
    method: string;
    path: string;
    status: number;
    body: Json;
  }
  const recorded = JSON.parse(gunzipSync(readFileSync(recordings.path)).toString("utf8")) as Recorded[];
  return recorded.map(({ source, method, path, status, body }) => ({ name: source, method, path, status, body }));
}

function readFixtures(): Exchange[] {
  return readdirSync(fixtures).flatMap((scenario) => {
    const raw = JSON.parse(readFileSync(new URL(`${scenario}/raw-fixture.json`, fixtures), "utf8")) as {
      method: string;
      path: string;
      status: number;
      response: Json;
    }[];
    return raw.map(({ method, path, status, response }) => ({
      name: scenario,
      method: method.toUpperCase(),
      path,
      status,
      body: response,
    }));
  });
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

function kindOf({ method, path, status }: Exchange): Kind | null {
  if (status < 200 || status > 299 || method === "DELETE" || status === 204) return null;
  const bare = path.split("?")[0] as string;
  return kinds.find(([pattern]) => pattern.test(bare))?.[1] ?? null;
}

function elementsOf(body: Json): Fields[] {
  if (Array.isArray(body)) return body as Fields[];
  const object = body as Fields;
  return Array.isArray(object.items) ? (object.items as Fields[]) : [object];
}

/** Whether an element is what its path promises; a few endpoints answer with something shorter. */
function isWhole(kind: Kind, element: Fields): boolean {
  if (kind === "user") return typeof element.login === "string" && typeof element.id === "number";
  if (kind === "repository") return typeof element.full_name === "string" && typeof element.private === "boolean";
  return element.url !== undefined || kind === "review";
}

describe.each([
  {
    source: `octokit.rb's recordings ${recordings.reason}`,
    exists: recordings.exists,
    read: readRecordings,
    least: 250,
  },
  { source: "@octokit/fixtures", exists: true, read: readFixtures, least: 40 },
])("$source", ({ exists, read, least }) => {
  const exchanges = exists ? read().filter((exchange) => kindOf(exchange) !== null) : [];
  const resources = new AsyncDisposableStack();
  let ctx: Context;
  let replayed: Exchange;

  beforeAll(async () => {
    if (!exists) return;
    const server = createServer((_request, response) => {
      const text = JSON.stringify(replayed.body).replaceAll(GITHUB, address);
      response.writeHead(replayed.status, { "content-type": "application/json; charset=utf-8" }).end(text);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    // A clock that leaps at each look: the client keeps writes a second apart, which nobody here waits for.
    let leaps = 0;
    const clock = { now: () => new Date(Date.now() + 2_000 * leaps++) };
    resources.defer(() => new Promise<void>((resolve) => server.close(() => resolve())));
    ({ ctx } = resources.use(await openMirror({ upstream: address, web: false, clock })));
  });
  afterAll(() => resources.disposeAsync());

  test.skipIf(!exists)("there is enough to prove it by", () => {
    expect(exchanges.length).toBeGreaterThan(least);
  });

  test.skipIf(!exists).each(exchanges.map((exchange, index) => ({ ...exchange, index })))(
    "$index $method $path ($name)",
    async (exchange) => {
      replayed = exchange;
      const kind = kindOf(exchange) as Kind;
      const read = await readByClient(ctx, exchange);
      const elements = elementsOf(read as Json);
      const recorded = elementsOf(exchange.body);
      for (const [index, element] of elements.entries()) {
        if (isWhole(kind, element))
          expect(await storeAndServe(ctx, kind, element)).toEqual(asReplayed(recorded[index] as Fields, ctx));
      }
    },
  );
});

/**
 * The replaying server put its own address into texts too; those are people's words, and are served as they were read.
 */
function asReplayed(recorded: Json, ctx: Context, key = ""): Json {
  if (typeof recorded === "string")
    return /url$|^href$/.test(key) ? recorded : recorded.replaceAll(GITHUB, ctx.config.upstreamUrl);
  if (typeof recorded !== "object" || recorded === null) return recorded;
  if (Array.isArray(recorded)) return recorded.map((element) => asReplayed(element, ctx, key));
  return Object.fromEntries(Object.entries(recorded).map(([name, value]) => [name, asReplayed(value, ctx, name)]));
}

async function readByClient(ctx: Context, { method, path }: Exchange): Promise<unknown> {
  const encoded = path.replaceAll("<", "%3C").replaceAll(">", "%3E");
  if (method === "GET") {
    const answer = await ctx.upstream.get(encoded, { priority: "caller" });
    if (answer.kind !== "ok") throw new Error(`The client read ${answer.kind}`);
    return answer.body;
  }
  return JSON.parse((await ctx.upstream.write({ method: method as "POST", path: encoded, body: "{}" })).body);
}

class RollBack extends Error {}

/**
 * Merges into an empty mirror, renders what was stored with GitHub's own address, and leaves the mirror empty again.
 */
async function storeAndServe(ctx: Context, kind: Kind, element: Fields): Promise<Json> {
  const api = ctx.config.upstreamUrl;
  const fullName =
    kind === "repository"
      ? String(element.full_name)
      : (/\/repos\/([^/]+\/[^/]+)/.exec(String(element.url ?? element.pull_request_url ?? ""))?.[1] ?? "none/none");
  const id = repositoryIdIn(element);
  const page = `https://github.com/${fullName}`;
  const at = { api, repository: { id, fullName, htmlUrl: page }, seenAt: new Date(), read: true };
  const home: Fields = {
    id,
    name: "",
    full_name: fullName,
    private: false,
    owner: null,
    url: `${api}/repos/${fullName}`,
    html_url: page,
    issues_url: "",
  };
  let served: Json = null;
  await ctx.db
    .transaction(async (tx) => {
      // An element that embeds its repository brings the one representation of it that is merged.
      const withHome = kind !== "user" && kind !== "repository" && !JSON.stringify(element).includes('"full_name"');
      await mergeObserved(
        tx,
        joinObserved([...(withHome ? [observe("repository", home, at)] : []), observe(kind, element, at)]),
      );
      const resource = resourceOf(kind);
      const detail = resource.detailKeys.size > 0 ? sql`detail::text` : sql`null`;
      const body = resource.hasBody ? sql`body` : sql`null`;
      const own = kind === "user" || kind === "repository" ? sql`id = ${Number(element.id)}` : sql`true`;
      const complete = kind === "issue" || kind === "pull_request" ? sql`id is not null` : own;
      const rows = await tx.query<{ document: string; detail: string | null; body: string | null }>(sql`
        select document::text, ${detail} as detail, ${body} as body from ${sql.identifier(resource.table.name)}
          where ${complete}`);
      expect(rows).toHaveLength(1);
      const repositoryId = kind === "user" ? 0 : kind === "repository" ? Number(element.id) : id;
      const [text] = await renderDocuments(
        new SharedRows(tx),
        rows.map((row) => ({ ...row, repositoryId })),
        { api: GITHUB },
      );
      served = JSON.parse(text as string) as Json;
      throw new RollBack();
    })
    .catch((error: unknown) => {
      if (!(error instanceof RollBack)) throw error;
    });
  return served;
}

function repositoryIdIn(element: Fields): number {
  const base = (element.base as Fields | undefined)?.repo as Fields | undefined;
  const repository = element.repository as Fields | undefined;
  return Number(base?.id ?? repository?.id ?? element.repository_id ?? 4_242);
}
