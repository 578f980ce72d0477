import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { migrate } from "../../db/migrate.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { LONG_TEST_MS, PATIENCE_MS } from "../support/bounds.ts";
import { inherited } from "../support/config.ts";
import { printFigures } from "../support/figures.ts";
import { openMirror, type TestMirror } from "../support/mirror.ts";
import { openOwnStores } from "../support/own-stores.ts";
import { until } from "../support/patience.ts";
import { startProgram } from "../support/program.ts";
import { tell } from "./tell.ts";

/**
 * `EVENTS=50000 KILLS=100` is the proof: with processes and stores of its own, which are restarted and emptied on the
 * way.
 */
const EVENTS = Number(process.env.EVENTS ?? 240);
const KILLS = Number(process.env.KILLS ?? 3);
const IS_WHOLE = process.env.KILLS !== undefined;
const TEST_MS = Math.max(LONG_TEST_MS, 40 * EVENTS);

/** The events of each repository are told in the order of their numbers. */
const REPOSITORIES = 8;

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

/** Two web processes and what applies deliveries. */
interface Places extends AsyncDisposable {
  mirror: TestMirror;
  urls: string[];
}

/** The same as processes on stores of their own, and what goes wrong with those. */
interface OwnPlaces extends Places {
  restartPostgres(): Promise<void>;
  flushRedis(): Promise<void>;
}

async function openHere(): Promise<Places> {
  const mirror = await openMirror({ workers: true });
  return {
    mirror,
    urls: [mirror.url, await mirror.openSibling()],
    [Symbol.asyncDispose]: () => mirror[Symbol.asyncDispose](),
  };
}

async function openElsewhere(): Promise<OwnPlaces> {
  await using opening = new AsyncDisposableStack();
  const stores = opening.use(await openOwnStores());
  await migrate(stores.postgres.url);
  const env = { DATABASE_URL: stores.postgres.url, REDIS_URL: stores.redis.url };
  const mirror = opening.use(await openMirror({ web: false, env }));
  const webs = [1, 2].map(() => startProgram("src/web.ts", { ...mirror.env, LOG_LEVEL: "info" }));
  for (const entry of ["workers/main.ts", "workers/scheduler.ts"]) startProgram(entry, mirror.env);
  const urls = await Promise.all(webs.map(async (web) => String((await web.said("Listening")).address)));
  const all = opening.move();
  return {
    mirror,
    urls,
    async restartPostgres() {
      await stores.postgres.stop();
      await stores.postgres.start();
    },
    flushRedis: async () => void (await mirror.ctx.redis.flushall()),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** `tain follow` as a process that is killed. */
class Follower {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor({ url, token, since }: { url: string; token: string; since: string }, onLine: (line: string) => void) {
    const args = [main, "follow", "--json", "--url", url, "--since", since];
    const env = { ...inherited, TAIN_TOKEN: token };
    this.#child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "ignore"] });
    const { stdout } = this.#child;
    if (!stdout) throw new Error("The follower has no output");
    const lines = createInterface({ input: stdout }).on("line", onLine);
    this.#ended = Promise.all([once(this.#child, "exit"), once(lines, "close")]);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }
}

/** The events of one repository, one after the other, so that upstream's order is known; until each is acknowledged. */
async function tellAll(at: { mirror: TestMirror; urls: readonly string[] }, id: number, count: number): Promise<void> {
  const repository = { id, full_name: `octo/demo-${id}`, owner: { id: 9 } };
  for (let number = 0; number < count; number++) {
    const payload = { number, text: `${id}/${number}`, repository };
    const guid = randomUUID();
    for (let attempt = 0; ; attempt++) {
      const url = at.urls[(number + attempt) % at.urls.length] ?? "";
      try {
        await tell({ ctx: at.mirror.ctx, url }, { event: "star", guid, payload });
        break;
      } catch (error) {
        // The stores are away for a while: upstream would send it again, too.
        if (attempt > 1_000) throw error;
        await new Promise((done) => setTimeout(done, 50));
      }
    }
  }
}

test(
  `a reader that is killed ${KILLS} times and goes on misses none of ${EVENTS} events, and is told none twice`,
  async () => {
    await using own = IS_WHOLE ? await openElsewhere() : null;
    await using here = own ? null : await openHere();
    const places = own ?? here;
    if (!places) throw new Error("There is no mirror");
    const { mirror, urls } = places;
    const token = await createApiToken(mirror.ctx, {
      ...{ userId: 1, canWrite: false, permissions: ["hooks:write"] },
      hourlyLimit: 0,
    });
    const told = new Map<string, string>();
    const order: { id: number; number: number }[] = [];
    let [twice, changed, broken, since] = [0, 0, 0, "0"];
    const hear = (line: string) => {
      let event: { id: string; data: { number: number; repository: { id: number } } };
      try {
        event = JSON.parse(line);
      } catch (error) {
        // What a killed process was writing.
        if (!(error instanceof SyntaxError)) throw error;
        broken += 1;
        return;
      }
      const before = told.get(event.id);
      if (before !== undefined) twice += 1;
      if (before !== undefined && before !== line) changed += 1;
      told.set(event.id, line);
      order.push({ id: event.data.repository.id, number: event.data.number });
      since = event.id;
    };
    const each = Math.ceil(EVENTS / REPOSITORIES);
    const ids = Array.from({ length: REPOSITORIES }, (_, at) => at + 1);
    const begunAt = performance.now();
    const telling = Promise.all(ids.map((id) => tellAll(places, id, each)));
    let failure: unknown = null;
    telling.catch((error: unknown) => {
      failure = error;
    });
    const all = each * REPOSITORIES;
    const troubles = new Map([
      [Math.floor(KILLS / 3), async () => await own?.restartPostgres()],
      [Math.floor((2 * KILLS) / 3), async () => await own?.flushRedis()],
    ]);
    for (let kill = 0; kill <= KILLS; kill++) {
      const url = urls[kill % urls.length] ?? "";
      const follower = new Follower({ url, token, since }, hear);
      try {
        const enough = kill === KILLS ? all : Math.floor((all * (kill + 1)) / (KILLS + 1));
        await troubles.get(kill)?.();
        const isEnough = () => {
          if (failure) throw failure;
          return told.size >= enough;
        };
        await until(`${enough} are told`, isEnough, IS_WHOLE ? TEST_MS : PATIENCE_MS);
      } finally {
        await follower.kill();
      }
    }
    await telling;
    const seconds = (performance.now() - begunAt) / 1_000;
    const missing = all - told.size;
    printFigures("feed", { events: all, kills: KILLS, missing, twice, changed, broken, seconds });
    expect({ missing, twice, changed }).toEqual({ missing: 0, twice: 0, changed: 0 });
    // A delivery that waited in Redis while Postgres was away comes after those that arrived since.
    const numbers = Array.from({ length: each }, (_, number) => number);
    for (const id of ids) {
      const heard = order.filter((one) => one.id === id).map(({ number }) => number);
      expect(IS_WHOLE ? heard.toSorted((one, other) => one - other) : heard, `repository ${id}`).toEqual(numbers);
    }
    // One order for all: ids only grow.
    const inOrder = [...told.keys()].map(Number);
    expect(inOrder).toEqual(inOrder.toSorted((one, other) => one - other));
  },
  TEST_MS,
);
