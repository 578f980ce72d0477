/**
 * Ten honest readers, alone and then beside an attack: what they are answered, and how soon. Readers, attacker and the
 * web process are processes of their own; the readers begin once the attack does. BESIDE=20 has each attack last so many
 * seconds.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { sign } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hookSecret } from "../../src/config/hook-secrets.ts";
import { type ApiWorld, openApiWorld } from "../api/api-world.ts";
import { linesOf } from "../proofs/proof.ts";
import { TEST_MS } from "../support/bounds.ts";
import { inherited } from "../support/config.ts";
import { printFigures } from "../support/figures.ts";
import type { Holds } from "../support/insides.ts";
import { type Program, startProgram } from "../support/program.ts";
import type { Attack } from "./beside-attacker.ts";
import { knownAttacks } from "./known-attacks.ts";
import type { Fuzz } from "./measured-web.ts";

const SECONDS = Number(process.env.BESIDE ?? 4);
const isWhole = process.env.BESIDE !== undefined;
const READERS = 10;
/** Beside other work on the machine a figure of seconds says little. */
const MOST_TIMES = isWhole ? 3 : 20;
/** In processor time, of which a busy machine takes several times what an idle one does. */
const MOST_HELD_MS = isWhole ? 50 : 150;

let world: ApiWorld;
let url: string;
/** For how long the web process's event loop was held since the last call. */
let holds: () => Promise<Holds>;
let ended: (() => Promise<void>)[];
beforeAll(async () => {
  ended = [];
  // As it is deployed: the limits that callers meet are those of every installation.
  world = await openApiWorld({ issues: 150, env: { RATE_LIMIT_USER: "0" } });
  const web: Program = startProgram("src/web.ts", { ...world.env, LOG_LEVEL: "info" }, [], {
    nodeFlags: ["--import", fileURLToPath(new URL("../support/insides.ts", import.meta.url))],
    atEnd: (kill) => ended.push(kill),
  });
  // No type can say what a line of the log holds.
  ({ address: url } = (await web.said("Listening")) as unknown as { address: string });
  const { port } = (await web.said("Insides")) as unknown as { port: number };
  holds = async () => (await (await fetch(`http://127.0.0.1:${port}`)).json()) as Holds;
});
afterAll(async () => {
  for (const kill of ended ?? []) await kill();
  await world?.[Symbol.asyncDispose]();
});

interface Reading {
  reads: number;
  p99Ms: number;
  statuses: Record<string, number>;
}

/** Runs one of the programs of this folder to its end, and answers the last line that it printed. */
async function run(
  file: string,
  { args = [], input = "", onLine = () => {} }: { args?: readonly string[]; input?: string; onLine?: () => void },
): Promise<Record<string, unknown>> {
  const child = spawn(process.execPath, [fileURLToPath(new URL(file, import.meta.url)), ...args], { env: inherited });
  let output = "";
  let failure = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    output += part;
    onLine();
  });
  child.stderr.setEncoding("utf8").on("data", (part: string) => {
    failure += part;
  });
  child.stdin.end(input);
  const [code] = await once(child, "close");
  const last = linesOf(output).at(-1);
  if (code !== 0 || !last) throw new Error(`${file} ended with ${code}: ${failure}`);
  return last;
}

async function readAll(): Promise<Reading> {
  const [first] = world.repositories;
  const list = `/repos/${first?.fullName}/issues`;
  const paths = [`${list}?per_page=30`, `${list}/1`, `${list}/comments`, `/repos/${first?.fullName}`];
  // No type can say what a program prints.
  return (await run("beside-reader.ts", {
    args: [url, world.readToken, String(READERS), String(SECONDS), ...paths],
  })) as unknown as Reading;
}

/** Reads once the attack has begun, and answers what it has come to as well. */
async function readBeside(attack: Attack): Promise<[Reading, Record<string, unknown>]> {
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const attacked = run("beside-attacker.ts", { input: JSON.stringify(attack), onLine: resolve });
  const read = Promise.race([begun, attacked]).then(readAll);
  return await Promise.all([read, attacked]);
}

async function signed(event: string, body: string): Promise<Fuzz> {
  const id = world.repositories[0]?.id ?? 0;
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

async function attacks(): Promise<Record<string, Omit<Attack, "url" | "seconds">>> {
  const [first] = world.repositories;
  const [owner = "", name = ""] = first?.fullName.split("/") ?? [];
  const { body: repository } = await world.getUpstream(`/repos/${first?.fullName}`);
  const known = await knownAttacks({ owner, name, repository }, signed);
  const requests = (of: readonly Fuzz[], headers: Record<string, string>) =>
    of.map(({ method, path, body, headers: own = {} }) => ({
      ...{ method, path, headers: { "User-Agent": "attacker", ...headers, ...own } },
      ...(body === undefined ? {} : { body }),
    }));
  const dearest = known.filter(({ method, path }) => method === "GET" || path === "/graphql");
  const deliveries = known.filter(({ name }) => name.startsWith("25 MB"));
  const half = (path: string, headers: Record<string, string>) => ({
    ...{ requests: [], perSecond: 0 },
    halfSent: { connections: 200, path, headers: { "User-Agent": "attacker", ...headers }, bodyBytes: 4 * 2 ** 20 },
  });
  const { headers: deliverys = {} } = await signed("star", "{}");
  const json = { "Content-Type": "application/json" };
  return {
    "twelve of the dearest requests a second": {
      ...{ requests: requests(dearest, { Authorization: `Bearer ${world.token}` }), perSecond: 12, halfSent: null },
    },
    "twelve of the dearest requests a second of a stranger": {
      ...{ requests: requests(dearest, {}), perSecond: 12, halfSent: null },
    },
    "two hundred half-sent bodies": half("/graphql", json),
    "two hundred half-sent deliveries": half("/webhooks", deliverys),
    "deliveries of 25 MB": { requests: requests(deliveries, {}), perSecond: 1, halfSent: null },
  };
}

test(
  "ten readers keep their answers beside every attack",
  async () => {
    await readAll(); // The first run pays for what is done once.
    const told: Record<string, unknown>[] = [];
    const wrong: string[] = [];
    for (const [attack, how] of Object.entries(await attacks())) {
      // Next to each other, so that both meet the machine in the same state.
      const alone = await readAll();
      await holds();
      const [beside, sent] = await readBeside({ ...how, url, seconds: SECONDS });
      const { heldMs } = await holds();
      const ratio = beside.p99Ms / alone.p99Ms;
      const failed = Object.entries(beside.statuses).reduce((sum, [status, n]) => sum + (status === "200" ? 0 : n), 0);
      told.push({
        attack,
        ratio,
        aloneMs: alone.p99Ms,
        failed,
        heldMs,
        p99Ms: beside.p99Ms,
        reads: beside.reads,
        sent: sent.requests,
        sentBytes: sent.sentBytes,
        answers: sent.statuses,
      });
      if (failed > 0) wrong.push(`${attack}: ${JSON.stringify(beside.statuses)}`);
      if (ratio > MOST_TIMES)
        wrong.push(`${attack}: p99 ${beside.p99Ms.toFixed(1)} ms, alone ${alone.p99Ms.toFixed(1)}`);
      if (heldMs > MOST_HELD_MS) wrong.push(`${attack}: the event loop was held for ${heldMs.toFixed(0)} ms`);
    }
    printFigures("beside attack", { attacks: told });
    expect(wrong).toEqual([]);
  },
  TEST_MS,
);
