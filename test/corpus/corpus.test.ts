/**
 * Requests that are made to hold a web process, or to have it answer 5xx: each is asked of a process as it is started
 * in production, which tells for how long it held the event loop. CORPUS=30000 asks all of them, and as many generated
 * queries; otherwise a part of them is asked.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { apiSchema } from "../../src/api/graphql/schema.ts";
import { type ApiWorld, openApiWorld } from "../api/api-world.ts";
import { askAt } from "../support/asking.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { printFigures } from "../support/figures.ts";
import { generateQuery } from "../support/graphql-queries.ts";
import { graphqlBombs, LARGE_TEXTS, listBombs, mutationBombs, SLOW_TEXTS } from "./bombs.ts";
import { type Fuzz, type Measured, type MeasuredWeb, startMeasuredWeb } from "./measured-web.ts";
import { asGraphql, IN_ADDRESSES, nastyMutations, nastyQueries, nastyReads, nastyWrites, usualIn } from "./nasty.ts";
import { poolsIn } from "./query-pools.ts";

const QUERIES = Number(process.env.CORPUS ?? 75);
const isWhole = process.env.CORPUS !== undefined;
const CORPUS_MS = isWhole ? 12 * LONG_TEST_MS : LONG_TEST_MS;
/** A prime, so that no operation and no value is left out in every run. */
const PART = 61;
/** Upstream takes a write a second from each account. */
const ACCOUNTS = 20;

/**
 * Even a busy machine does not stretch 50 ms of processor time to this. A whole run is held to 50 ms, by `npm run
 * proofs corpus`.
 */
const HELD_MS = 500;

/** Some of these pages are made at the first request, and that time counts too. */
const PAGES: Fuzz[] = ["/-/openapi.json", "/-/docs", "/-/dashboard", "/"].map((path) => ({
  name: `GET ${path}`,
  method: "GET",
  path,
}));

let world: ApiWorld;
let web: MeasuredWeb;
const seen: Measured[] = [];
beforeAll(async () => {
  const env = { RATE_LIMIT_GRAPHQL: "0", RATE_LIMIT_USER: "0" };
  world = await openApiWorld({ issues: 150, upstreamTokens: ACCOUNTS, env });
  web = await startMeasuredWeb(world.env, world.token);
});
afterAll(async () => {
  const worst = seen.toSorted((one, other) => other.heldMs - one.heldMs).slice(0, 10);
  printFigures("corpus", {
    requests: seen.length,
    failed: seen.filter(isFault).length,
    longestMs: worst[0]?.heldMs,
    worst: worst.map(({ text: _, ...one }) => one),
  });
  await web?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

function isFault({ status, text }: Measured): boolean {
  return status >= 500 || text.includes("Something went wrong");
}

const some = <T>(all: readonly T[]): T[] => (isWhole ? [...all] : all.filter((_, at) => at % PART === 0));

/** Asks one after another, so that each hold has its request. */
async function askAll(all: Iterable<Fuzz>): Promise<Measured[]> {
  const asked: Measured[] = [];
  for (const fuzz of all) {
    const { text, ...one } = await web.ask(fuzz);
    asked.push({ ...one, text: text.slice(0, 300) });
  }
  return asked;
}

/** Prints the worst. */
function judge(asked: readonly Measured[]): void {
  seen.push(...asked);
  const line = ({ heldMs, lateMs, cpuMs, status, name }: Measured) =>
    `${[heldMs, lateMs, cpuMs].map((ms) => ms.toFixed(0).padStart(5)).join(" ")}  ${status}  ${name}`;
  const worst = asked.toSorted((one, other) => other.heldMs - one.heldMs).slice(0, 10);
  console.info(["held  late  cpu  status", ...worst.map(line)].join("\n"));
  expect(asked.filter(isFault).map(({ name, status, text }) => `${status} ${name} ${text}`)).toEqual([]);
  expect(asked.filter(({ heldMs }) => heldMs > HELD_MS).map(line)).toEqual([]);
}

async function bodiesAre(text: string, repositoryId: number): Promise<void> {
  await world.ctx.db.query(sql`update issues set body = ${text} where repository_id = ${repositoryId}`);
}

test(
  "bombs hold the web process no longer than anything else does",
  async () => {
    const [repository] = world.repositories;
    if (!repository) throw new Error("The world has no repository");
    const { id, fullName } = repository;
    const [owner = "", name = ""] = fullName.split("/");
    const { body: issue } = await world.get(`/repos/${fullName}/issues/1`);
    await bodiesAre(LARGE_TEXTS.prose, id);
    const bombs = [...PAGES, ...graphqlBombs({ owner, name }), ...mutationBombs(issue.node_id)];
    // The first also pays for what is done once: the compiler's work, connections, threads.
    await askAll(bombs.slice(PAGES.length, PAGES.length + 1));
    const asked = await askAll(bombs);
    for (const [kind, text] of Object.entries(LARGE_TEXTS).slice(isWhole ? 0 : -1)) {
      await bodiesAre(text, id);
      // Elsewhere each form is asked once, and not each with each.
      asked.push(...(await askAll(listBombs(fullName, kind).filter(({ isSingle }) => isWhole || isSingle))));
    }
    for (const text of SLOW_TEXTS.slice(isWhole ? 0 : -1)) {
      await bodiesAre(text, id);
      const headers = { Accept: "application/vnd.github.html+json" };
      const one = {
        name: `Markdown: ${text.slice(0, 10)}…`,
        method: "GET",
        path: `/repos/${fullName}/issues/1`,
        headers,
      };
      asked.push(...(await askAll([one, { ...one, name: `${one.name}, again` }])));
    }
    judge(asked);
  },
  CORPUS_MS,
);

test(
  "nasty values hold the web process no longer than anything else does",
  async () => {
    const usual = await usualIn(world);
    const { body: described } = await askAt(world.url, "GET", "/-/openapi.json");
    const { body: issue } = await world.get(`/repos/${world.repositories[0]?.fullName}/issues/1`);
    const schema = apiSchema();
    const all = [
      ...Object.values(IN_ADDRESSES).flatMap((value) => nastyReads(described, usual, value)),
      ...nastyWrites(described, usual),
      ...nastyQueries(schema, usual),
      ...nastyMutations(schema, issue.node_id),
    ];
    judge(await askAll(some(all)));
  },
  CORPUS_MS,
);

test(
  `generated queries hold the web process no longer than anything else does: ${QUERIES}`,
  async () => {
    const schema = apiSchema();
    const pools = await poolsIn(world);
    const queries = Array.from({ length: QUERIES }, (_, seed) => {
      const { query, variables } = generateQuery(schema, seed, pools, 6);
      return asGraphql(`generated ${seed}`, query, variables);
    });
    judge(await askAll(queries));
  },
  CORPUS_MS,
);
