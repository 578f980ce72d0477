import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { PATIENCE_MS } from "./bounds.ts";
import { compare } from "./comparison.ts";
import { OWNER, UPSTREAM_TOKEN } from "./config.ts";
import { printFigures } from "./figures.ts";
import { openMirror } from "./mirror.ts";
import { until } from "./patience.ts";
import type { Program } from "./program.ts";
import { type Exchange, openTap, type UpstreamTap } from "./upstream-tap.ts";

/** A repository, its upstream and its mirror. Programs copy the repository, and are killed meanwhile. */
export interface KilledBackfill extends AsyncDisposable {
  simulator: Simulator;
  tap: UpstreamTap;
  ctx: Context;
  fullName: string;
  /** The environment for the programs. */
  env: NodeJS.ProcessEnv;
}

/** Where in the backfill the program is killed. */
export interface Moment {
  /** The list that is being read. */
  during: keyof typeof pages;
  /** Which page of the list, counted from the last kill. */
  nth: number;
  /**
   * "waiting": upstream has answered, but the program has not got the answer. "storing": the program has just received
   * it.
   */
  when: "waiting" | "storing";
  /** How many pages the kill costs at most, which are then read twice. Default: one. */
  costs?: number;
}

const pages = {
  issues: (one: Exchange) => /^\/repositories\/\d+\/issues\?/.test(one.path),
  pulls: (one: Exchange) => /^\/repositories\/\d+\/pulls\?/.test(one.path),
  "issue comments": (one: Exchange) => /^\/repositories\/\d+\/issues\/comments\?/.test(one.path),
  "review comments": (one: Exchange) => /^\/repositories\/\d+\/pulls\/comments\?/.test(one.path),
  reviews: (one: Exchange) => one.path === "/graphql" && one.body.includes("pullRequests(first: $first"),
  "reviews of one pull request": (one: Exchange) => /^\/repositories\/\d+\/pulls\/\d+\/reviews\?/.test(one.path),
  mergeability: (one: Exchange) => one.path === "/graphql" && /p\d+: pullRequest\(/.test(one.body),
};

export async function openKilledBackfill(): Promise<KilledBackfill> {
  const resources = new AsyncDisposableStack();
  // Upstream works out no mergeability during the test. So what it does not know when it is asked again stays unknown.
  const simulator = resources.use(await openSimulator({ worldOptions: { mergeableDelayMs: 3_600_000 } }));
  const { world } = simulator;
  const fullName = generateWorld(world, { seed: 7, repositories: 1, issues: 500, pulls: 350 })
    .repositories.map((one) => world.fullName(one))
    .join();
  simulator.tokens.create({ token: UPSTREAM_TOKEN, login: OWNER, repositories: "all", write: true });
  const tap = resources.use(await openTap(simulator.url));
  const home = await mkdtemp(join(tmpdir(), "tain-killed-"));
  resources.defer(() => rm(home, { recursive: true, force: true }));
  const { ctx, env } = resources.use(
    await openMirror({ upstream: tap.url, web: false, env: { REPOSITORIES: fullName, TAIN_HOME: home } }),
  );
  return {
    simulator,
    tap,
    ctx,
    fullName,
    env: { ...env, LOG_LEVEL: "warn" },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/**
 * Starts the program, kills it at each moment and starts it again, and lets the last one finish. Checks that the copy
 * is complete, that no kill cost more pages than it may, and that each takeover was in time. Prints the measurements.
 * `finished` gets the last program before it is stopped.
 */
export async function killDuringBackfill(
  { tap, ctx, simulator, fullName }: KilledBackfill,
  program: "worker" | "tree",
  start: () => Program,
  moments: readonly Moment[],
  finished: (last: Program) => Promise<void> = async () => {},
): Promise<void> {
  const killedAt: { exchange: number; takeoverMs: number }[] = [];
  for (const { during, nth, when } of moments) {
    const reached = tap[when === "waiting" ? "withheld" : "answered"](pages[during], nth);
    const program = start();
    await takenOver(tap, killedAt.at(-1));
    await Promise.race([reached, ended(program), inVain(`${during} page ${nth} is read`, tap, program)]);
    await program.kill();
    killedAt.push({ exchange: tap.exchanges.length, takeoverMs: performance.now() });
  }
  const last = start();
  await takenOver(tap, killedAt.at(-1));
  await Promise.race([untilLive(ctx), ended(last)]);
  const { counts, differences } = await compare(ctx, simulator, fullName);
  // The requests after this point are no part of the copy.
  const exchanges = [...tap.exchanges];
  await finished(last);
  await last.stop();
  expect(differences).toEqual([]);
  expect(counts.issues).toBeGreaterThanOrEqual(850);

  const repeated = killedAt.map(({ exchange }, index) =>
    readAgain(exchanges, exchange, killedAt[index + 1]?.exchange ?? Number.POSITIVE_INFINITY),
  );
  printFigures("kills", {
    program,
    readTwice: repeated.map((some) => some.length),
    pages: exchanges.filter(isPage).length,
    takenOverAfterMs: killedAt.map(({ takeoverMs }) => Math.round(takeoverMs)),
  });
  for (const [index, some] of repeated.entries())
    expect(some.length, some.join("\n")).toBeLessThanOrEqual(moments[index]?.costs ?? 1);
}

/**
 * Whether this is a complete answer that belongs to the copy: the repository, its lists, GraphQL. A refresh of a single
 * resource does not.
 */
function isPage({ method, path, status }: Exchange): boolean {
  if (status !== 200) return false;
  return path === "/graphql" || (method === "GET" && /^\/repositories\/\d+($|.*[?&]per_page=)/.test(path));
}

/** The pages between two exchanges (by index) that had been read before the first of them. */
function readAgain(exchanges: readonly Exchange[], from: number, to: number): string[] {
  const nameOf = ({ path, body }: Exchange) => `${path} ${body}`;
  const before = new Set(exchanges.slice(0, from).filter(isPage).map(nameOf));
  return exchanges
    .slice(from, to)
    .filter(isPage)
    .map(nameOf)
    .filter((name) => before.has(name));
}

/** Waits until the program that was started after the kill asks for a page. Notes how long after the kill that is. */
async function takenOver(tap: UpstreamTap, kill: { exchange: number; takeoverMs: number } | undefined): Promise<void> {
  if (!kill) return;
  await until("another program takes the backfill over", async () =>
    tap.exchanges.slice(kill.exchange).some((one) => Object.values(pages).some((matches) => matches(one))),
  );
  kill.takeoverMs = performance.now() - kill.takeoverMs;
}

async function ended(program: Program): Promise<never> {
  const how = await program.exited;
  throw new Error(`The program ended by itself (${how}): ${JSON.stringify(program.lines)}`);
}

async function inVain(what: string, tap: UpstreamTap, program: Program): Promise<never> {
  await delay(PATIENCE_MS, undefined, { ref: false });
  const asked = tap.exchanges.slice(-20).map(({ method, path, status }) => `${method} ${path} ${status}`);
  throw new Error(
    `Waited ${PATIENCE_MS} ms in vain until ${what}. Asked last:\n${asked.join("\n")}\nLogged: ${JSON.stringify(program.lines)}`,
  );
}

async function untilLive(ctx: Context): Promise<void> {
  await until("the repository is live and nothing is left to be read again", async () => {
    const rows = await ctx.db.query(sql`select from repository_syncs where state = 'live'
        and not exists (select from refresh_marks where kind <> 'mergeability')`);
    return rows.length > 0;
  });
}
