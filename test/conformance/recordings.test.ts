import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import type { Fields, Json } from "../../src/json.ts";
import type { Kind } from "../../src/kinds/contract/kind.ts";
import { resourceOf } from "../../src/kinds/registry.ts";
import { renderDocuments } from "../../src/mirror/render/rendering.ts";
import { SharedRows } from "../../src/mirror/render/shared-rows.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { openMirror } from "../support/mirror.ts";
import {
  type Exchange,
  elementsOf,
  GITHUB,
  homeOf,
  isWhole,
  kindOf,
  observedIn,
  readFixtures,
  readRecordings,
  recordings,
  sentPath,
} from "./exchanges.ts";
import { openReplay } from "./replay.ts";

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
    const replay = resources.use(await openReplay(() => ({ status: replayed.status, body: replayed.body })));
    // A clock that leaps at each look: the client keeps writes a second apart, which nobody here waits for.
    let leaps = 0;
    const clock = { now: () => new Date(Date.now() + 2_000 * leaps++) };
    ({ ctx } = resources.use(await openMirror({ upstream: replay.url, web: false, clock })));
  });
  afterAll(() => resources.disposeAsync());

  test.skipIf(!exists)("there is enough to prove it by", () => {
    expect(exchanges.length).toBeGreaterThan(least);
  });

  test.skipIf(!exists).each(exchanges.map((exchange, index) => ({ ...exchange, index })))(
    "$index $method $path ($session)",
    async (exchange) => {
      replayed = exchange;
      const kind = kindOf(exchange) as Kind;
      const read = await readByClient(ctx, exchange);
      const elements = elementsOf(read as Json);
      const recorded = elementsOf(exchange.body as Json);
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
  const encoded = sentPath(path);
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
  const home = homeOf(kind, element, () => undefined);
  let served: Json = null;
  await ctx.db
    .transaction(async (tx) => {
      await mergeObserved(tx, observedIn(kind, element, { api, home, seenAt: new Date() }));
      const resource = resourceOf(kind);
      const detail = resource.detailKeys.size > 0 ? sql`detail::text` : sql`null`;
      const body = resource.hasBody ? sql`body` : sql`null`;
      const own = kind === "user" || kind === "repository" ? sql`id = ${Number(element.id)}` : sql`true`;
      const complete = kind === "issue" || kind === "pull_request" ? sql`id is not null` : own;
      const rows = await tx.query<{ document: string; detail: string | null; body: string | null }>(sql`
        select document::text, ${detail} as detail, ${body} as body from ${resource.table}
          where ${complete}`);
      expect(rows).toHaveLength(1);
      const repositoryId = kind === "user" ? 0 : kind === "repository" ? Number(element.id) : home.id;
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
