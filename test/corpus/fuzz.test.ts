/**
 * Requests at their dearest, each judged by what it costs and by what an honest caller is answered meanwhile. A case is
 * made by its number: FUZZ=20000 asks so many cases from FUZZ_FROM on, and judges them by the bounds of a quiet machine.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { sign } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiSchema } from "../../src/api/graphql/schema.ts";
import { hookSecret } from "../../src/config/hook-secrets.ts";
import { type ApiWorld, openApiWorld } from "../api/api-world.ts";
import { payloadsOfAllEvents } from "../matrix/payloads.ts";
import { askAt } from "../support/asking.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { printFigures } from "../support/figures.ts";
import { type Dearest, dearestCase, readsIn } from "./dearest.ts";
import { knownAttacks } from "./known-attacks.ts";
import { type Fuzz, type Measured, type MeasuredWeb, startMeasuredWeb } from "./measured-web.ts";
import { usualIn } from "./nasty.ts";

const CASES = Number(process.env.FUZZ ?? 40);
const FROM = Number(process.env.FUZZ_FROM ?? 0);
const isWhole = process.env.FUZZ !== undefined;
const MB = 2 ** 20;

/**
 * What one request may cost. Beside other work on the same machine, processor time is stretched by what it waits for, and
 * garbage is collected later.
 */
const MOST = isWhole
  ? { heldMs: 50, postgresMs: 500, memoryBytes: 64 * MB }
  : { heldMs: 500, postgresMs: 2_000, memoryBytes: 256 * MB };

let world: ApiWorld;
let web: MeasuredWeb;
let from: Dearest;
const seen: Measured[] = [];

beforeAll(async () => {
  const env = { RATE_LIMIT_GRAPHQL: "0", RATE_LIMIT_USER: "0", RATE_LIMIT_SEARCH_USER: "0" };
  world = await openApiWorld({ issues: 150, env });
  web = await startMeasuredWeb(world.env, world.token, world.ctx.db);
  const { body: described } = await askAt(world.url, "GET", "/-/openapi.json");
  const { repository } = await first();
  const payloads = payloadsOfAllEvents().map(({ event, payload }) => ({ event, payload: { ...payload, repository } }));
  from = { described, schema: apiSchema(), usual: await usualIn(world), delivery, payloads };
});
afterAll(async () => {
  const worst = (key: keyof typeof MOST) =>
    seen
      .toSorted((one, other) => (other[key] ?? 0) - (one[key] ?? 0))
      .slice(0, 10)
      .map(({ name, status, [key]: cost }) => ({ [key]: cost, status, name: name.slice(0, 200) }));
  printFigures("fuzz", {
    cases: seen.length,
    failed: seen.filter(isFault).length,
    honest: honest.asked,
    honestFailed: honest.failed.length,
    ...{ byLoop: worst("heldMs"), byPostgres: worst("postgresMs"), byMemory: worst("memoryBytes") },
    ...Object.fromEntries(
      Object.keys(MOST).map((key) => [key, Math.max(...seen.map((one) => one[key as keyof typeof MOST] ?? 0))]),
    ),
  });
  await web?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

async function first() {
  const [found] = world.repositories;
  if (!found) throw new Error("The world has no repository");
  const { body } = await world.getUpstream(`/repos/${found.fullName}`);
  const [owner = "", name = ""] = found.fullName.split("/");
  return { ...found, owner, name, repository: body };
}

/** A delivery of the first repository's holder. */
async function delivery(event: string, body: string): Promise<Fuzz> {
  const { id } = await first();
  const secret = hookSecret(world.ctx.config.webhookSecrets[0] ?? "", { type: "repository", id });
  const headers = {
    "Content-Type": "application/json",
    "X-GitHub-Event": event,
    "X-GitHub-Delivery": randomUUID(),
    "X-GitHub-Hook-Installation-Target-Type": "repository",
    "X-GitHub-Hook-Installation-Target-ID": String(id),
    "X-Hub-Signature-256": await sign(secret, body),
  };
  return { name: event, method: "POST", path: "/webhooks", body, headers };
}

/** A refusal for want of places says when to come again. Any other 5xx is a fault. */
function isFault({ status, text }: Pick<Measured, "status" | "text">): boolean {
  return (status >= 500 && status !== 503) || text.includes("Something went wrong");
}

const honest = { asked: 0, failed: [] as string[] };
const PAUSE_MS = 50;

/** An honest caller reads all the time, by another connection, until `stop`. */
async function readHonestly(stop: AbortSignal): Promise<void> {
  const { fullName } = await first();
  const paths = [`/repos/${fullName}/issues?per_page=10`, `/repos/${fullName}/issues/1`];
  for (let at = 0; !stop.aborted; at++) {
    const path = paths[at % paths.length] ?? "";
    const { status, text } = await askAt(web.address, "GET", path, { token: world.readToken });
    honest.asked++;
    if (status !== 200) honest.failed.push(`${path} is answered ${status}: ${text.slice(0, 200)}`);
    await delay(PAUSE_MS);
  }
}

const beyond = (one: Measured) =>
  (Object.keys(MOST) as (keyof typeof MOST)[]).filter((key) => (one[key] ?? 0) > MOST[key]);

/**
 * A body that is taken is held as it came, as a text, as what that holds, and on its way to Postgres. Few are at a time:
 * bodies have one budget, and large ones are read one after the other.
 */
const TIMES_HELD = 4;

/** The cost of a request; its memory is what it takes beyond its own body. */
async function ask(fuzz: Fuzz): Promise<Measured> {
  const { memoryBytes = 0, ...measured } = await web.ask(fuzz);
  const ofBody = TIMES_HELD * Buffer.byteLength(fuzz.body ?? "");
  return { ...measured, memoryBytes: Math.max(0, memoryBytes - ofBody) };
}

/** What a second request of the same costs, where it is less: the first also pays for what is done once. */
async function askCold(fuzz: Fuzz): Promise<Measured> {
  const measured = await ask(fuzz);
  if (beyond(measured).length === 0) return measured;
  const again = await ask(fuzz);
  const least = (key: keyof typeof MOST) => Math.min(measured[key] ?? 0, again[key] ?? 0);
  return { ...measured, heldMs: least("heldMs"), postgresMs: least("postgresMs"), memoryBytes: least("memoryBytes") };
}

async function judge(cases: AsyncIterable<Fuzz> | Iterable<Fuzz>): Promise<void> {
  const stopping = new AbortController();
  const reading = readHonestly(stopping.signal);
  const wrong: string[] = [];
  try {
    for await (const fuzz of cases) {
      const one = await askCold(fuzz);
      seen.push({ ...one, text: "" });
      const costs = beyond(one).map((key) => `${key} ${Math.round(one[key] ?? 0)}`);
      if (isFault(one)) costs.push(`${one.status} ${one.text.slice(0, 200)}`);
      if (costs.length > 0) wrong.push(`${one.name.slice(0, 300)}: ${costs.join(", ")}`);
    }
  } finally {
    stopping.abort();
    await reading;
  }
  expect(wrong).toEqual([]);
  expect(honest.failed).toEqual([]);
}

const FUZZ_MS = isWhole ? 18 * LONG_TEST_MS : LONG_TEST_MS;

test(
  "what once stopped the web process, its Postgres or its memory costs no more than anything else",
  async () => {
    const { owner, name, repository } = await first();
    await web.ask({ name: "the first", method: "GET", path: `/repos/${owner}/${name}/issues` });
    await judge(await knownAttacks({ owner, name, repository }, delivery));
  },
  FUZZ_MS,
);

test(
  `requests at their dearest cost no more than anything else: ${CASES}`,
  async () => {
    const reads = readsIn(from.described);
    async function* cases() {
      for (let seed = FROM; seed < FROM + CASES; seed++) yield await dearestCase(seed, from, reads);
    }
    await judge(cases());
  },
  FUZZ_MS,
);
