/**
 * Many targets, some of them slow, failing or dead, while processes are killed and stores go away: `npm run proofs
 * targets`. It takes stores of its own and a minute, so it is run only when it is asked for. `TARGETS=10 CHANGES=60` is
 * a small one.
 */
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { migrate } from "../../db/migrate.ts";
import { sql } from "../../db/sql.ts";
import { createTarget, type Scope } from "../../src/events/target.ts";
import { STORE_TIMEOUT_MS } from "../../src/inbox/inbox.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { LONG_TEST_MS, PATIENCE_MS } from "../support/bounds.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { printFigures } from "../support/figures.ts";
import { openOwnStores } from "../support/own-stores.ts";
import { until } from "../support/patience.ts";
import { type Program, startProgram } from "../support/program.ts";
import { openWorld } from "../support/world.ts";
import { type ToldRepository, tell } from "./tell.ts";

const TARGETS = Number(process.env.TARGETS ?? 10);
const CHANGES = Number(process.env.CHANGES ?? 60);
const isLarge = CHANGES >= 1_000;
const REPOSITORIES = isLarge ? 20 : 2;
/** The number of targets of each bad kind. */
const BAD = Math.ceil(TARGETS / 20);
/** Every so many targets hear of everything, the others of one repository each. */
const WHOLE_EVERY = 10;
/** How long those that fail answer 500. */
const FAILING_MS = Number(process.env.FAILING_MS ?? (isLarge ? 180_000 : 2_000));
const SLOW_MS = 300;
const WORKERS = isLarge ? 2 : 1;
const TEST_MS = isLarge ? 7_200_000 : LONG_TEST_MS;

type Temper = "well" | "slow" | "failing" | "dead";

interface Receiver {
  temper: Temper;
  /** Null: all of them. */
  repositoryId: number | null;
  /** The numbers that arrived, by repository, in the order of arrival and with repetitions. */
  heard: Map<number, number[]>;
  distinct: number;
  accepted: number;
  /** When each number was first heard, by repository, and below when some were heard again; in ms. */
  firstAt: Map<number, number>;
  again: { firstAt: number; at: number }[];
}

/** The numbers around the first that is smaller than the one before it. Null: all are in order. */
function brokenOrder(numbers: readonly number[]): string | null {
  const at = numbers.findIndex((number, place) => number < (numbers[place - 1] ?? 0));
  return at < 0 ? null : `… ${numbers.slice(Math.max(0, at - 5), at + 5).join(" ")} …`;
}

test.skipIf(process.env.TARGETS === undefined)(
  "each live target hears of each change in order, though others are slow, fail or are dead, processes are killed and stores go away",
  {
    timeout: TEST_MS,
  },
  async () => {
    await using stores = await openOwnStores();
    await migrate(stores.postgres.url);
    const onOwnStores = {
      DATABASE_URL: stores.postgres.url,
      REDIS_URL: stores.redis.url,
      TARGETS_ALLOWED: "127.0.0.1",
    };
    await using world = await openWorld({
      fill: ({ world: upstream }) =>
        void generateWorld(upstream, { seed: 7, repositories: REPOSITORIES, issues: 20 * REPOSITORIES, pulls: 0 }),
      env: onOwnStores,
      workers: false,
    });
    const env = {
      ...onOwnStores,
      REDIS_PREFIX: world.ctx.config.redisPrefix,
      UPSTREAM_URL: world.simulator.url,
      UPSTREAM_TOKEN,
      WEBHOOK_SECRET: world.ctx.config.webhookSecrets.join(),
      HOST: "127.0.0.1",
      // Nothing but webhooks moves this mirror.
      ...{ CATCH_UP_INTERVAL: "1d", SWEEP_INTERVAL: "1d" },
    };
    let programs: Program[] = [];
    let receiver = "";
    const start = async () => {
      const web = startProgram("src/web.ts", { ...env, PORT: receiver === "" ? "0" : new URL(receiver).port });
      programs = [
        web,
        ...Array.from({ length: WORKERS }, () => startProgram("workers/main.ts", env)),
        startProgram("workers/scheduler.ts", env),
      ];
      receiver = String((await web.said("Listening")).address);
    };
    await start();
    const state = (await (await fetch(`${world.simulator.url}/-/state`)).json()) as {
      repositories: { full_name: string }[];
    };
    const names = state.repositories.map(({ full_name }) => full_name);
    await world.mirror(...names);
    const streams = await Promise.all(
      names.map(async (name) => {
        const repository = (await world.get(`/repos/${name}`)).body as ToldRepository;
        const { body } = await world.get(`/repos/${name}/issues?state=all&per_page=1`);
        const [issue] = body as { title: string }[];
        if (!issue) throw new Error(`${name} has no issue that could change`);
        return { repository, issue };
      }),
    );
    const idAt = (at: number) => streams[at % streams.length]?.repository.id ?? 0;

    const receivers: Receiver[] = Array.from({ length: TARGETS }, (_, at) => {
      const temper = at < BAD ? "slow" : at < 2 * BAD ? "failing" : at < 3 * BAD ? "dead" : "well";
      const isWhole = at % WHOLE_EVERY === 0 && temper !== "slow";
      return {
        temper,
        repositoryId: isWhole ? null : idAt(at),
        heard: new Map(),
        distinct: 0,
        accepted: 0,
        firstAt: new Map(),
        again: [],
      };
    });
    const begun = performance.now();
    let arrived = 0;
    await using server = await openReceiver(receivers, () => {
      arrived += 1;
      return performance.now() - begun < FAILING_MS;
    });
    for (const [at, { temper, repositoryId }] of receivers.entries()) {
      const scope: Scope =
        repositoryId === null ? { kind: "everything", id: 0 } : { kind: "repository", id: repositoryId };
      await createTarget(world.ctx, {
        ...{ scope, madeBy: "operator", contentType: "json", insecureSsl: false, rewriteTo: null },
        ...{ url: temper === "dead" ? "http://127.0.0.1:9/" : `${server.url}/${at}` },
        ...{ secret: "a secret", events: ["*"], active: true },
      });
    }

    let told = 0;
    const numbers = new Map<string, number>();
    const each = Math.floor(CHANGES / REPOSITORIES);
    const tellAll = async ({ repository, issue }: (typeof streams)[number]) => {
      let titleBefore = issue.title;
      for (let number = 1; number <= each; number++) {
        const updated_at = `${new Date(Date.now() + number * 1_000).toISOString().slice(0, 19)}Z`;
        const payload = {
          action: "edited",
          issue: { ...issue, title: `${number}`, updated_at },
          changes: { title: { from: titleBefore } },
          repository,
        };
        const guid = randomUUID();
        numbers.set(guid, number);
        await tellSurely({ ctx: world.ctx, url: receiver }, { event: "issues", payload, guid });
        titleBefore = `${number}`;
        told += 1;
      }
    };
    const killAll = async () => {
      await Promise.all(programs.map((program) => program.kill()));
      await start();
    };
    const troubles: [name: string, share: number, make: () => Promise<unknown>][] = [
      ["first kill", 0.2, killAll],
      ["Redis emptied", 0.4, () => world.ctx.redis.flushall()],
      [
        "Postgres restarted",
        0.6,
        async () => {
          await stores.postgres.stop();
          await stores.postgres.start();
        },
      ],
      ["second kill", 0.8, killAll],
    ];
    const troubled: { name: string; begin: number; end: number; beginsAt: Date; endsAt: Date }[] = [];
    const trouble = async () => {
      for (const [name, share, make] of troubles) {
        await until(`${share} are told`, async () => told >= share * CHANGES, TEST_MS);
        const [begin, beginsAt] = [performance.now(), new Date()];
        await make();
        troubled.push({ name, begin, end: performance.now(), beginsAt, endsAt: new Date() });
      }
    };
    await Promise.all([trouble(), ...streams.map(tellAll)]);
    const toldSeconds = (performance.now() - begun) / 1_000;

    const wanted = ({ repositoryId }: Receiver) => (repositoryId === null ? each * REPOSITORIES : each);
    const live = receivers.filter(({ temper }) => temper !== "dead");
    const isWhole = () => live.every((one) => one.distinct === wanted(one));
    // As long as anything arrives, there is no hurry; what stands still for so long, hangs.
    const patienceMs = FAILING_MS + PATIENCE_MS;
    for (let [before, since] = [-1, performance.now()]; !isWhole() && performance.now() - since < patienceMs; ) {
      if (arrived !== before) [before, since] = [arrived, performance.now()];
      await delay(isLarge ? 1_000 : 50);
    }
    const seconds = (performance.now() - begun) / 1_000;

    // What came while Postgres was away waited in Redis, and may be told behind what has come since.
    const outage = troubled.find(({ name }) => name === "Postgres restarted");
    if (!outage) throw new Error("Postgres was not restarted");
    const late = await world.ctx.db.query<{ repositoryId: number; guid: string; wasAway: boolean }>(sql`
      select e.repository_id::float8 as "repositoryId", e.guid,
          e.received_at between ${outage.beginsAt}::timestamptz - ${`${STORE_TIMEOUT_MS} ms`}::interval and ${outage.endsAt} as "wasAway"
        from events e where exists (select from events b where b.repository_id = e.repository_id and b.id < e.id
          and b.received_at > e.received_at)`);
    const mayBeLate = new Set(late.map(({ repositoryId, guid }) => `${repositoryId} ${numbers.get(guid)}`));
    /** Where the order breaks first, by repository. */
    const broken = ({ heard }: Receiver) =>
      [...heard].flatMap(([id, all]) => brokenOrder(all.filter((one) => !mayBeLate.has(`${id} ${one}`))) ?? []);
    const faulty = live.filter((one) => broken(one).length > 0 || one.distinct !== wanted(one));
    const expected = live.reduce((sum, one) => sum + wanted(one), 0);
    const accepted = live.reduce((sum, one) => sum + one.accepted, 0);
    const duplicates = accepted - expected;
    /**
     * What happened between an event and its repetition: the first trouble that was not over when it was first heard.
     */
    const causeOf = (temper: Temper, { firstAt, at }: Receiver["again"][number]) => {
      const trouble = troubled.find((one) => one.end >= firstAt && one.begin <= at);
      return `${trouble?.name ?? "no trouble"}, ${temper}`;
    };
    const causes: Record<string, number> = {};
    for (const { temper, again } of live)
      for (const cause of again.map((one) => causeOf(temper, one))) causes[cause] = (causes[cause] ?? 0) + 1;
    // Webhooks told of every change, so the mirror should have made no event itself.
    const made = await world.ctx.db.count(sql`select from events where is_made`);
    const waiting = await world.ctx.db.query<{ n: number }>(sql`select count(*)::int as n from target_cursors c
      join targets t on t.id = c.target_id where t.url like '%:9/' and c.wanted_id > c.done_id and t.disabled_at is null`);
    printFigures("targets", {
      ...{ changes: each * REPOSITORIES, targets: TARGETS, live: live.length, expected, accepted, duplicates },
      ...{
        faulty: faulty.length,
        late: late.length,
        made,
        seconds: Math.round(seconds),
        toldSeconds: Math.round(toldSeconds),
      },
      ...{ twicePerThousand: (1_000 * duplicates) / expected, causes },
    });
    const cursors = sql`select c.target_id, c.repository_id, c.done_id, c.wanted_id, c.held_until, c.retry_at, t.disabled_at, t.problem
      from target_cursors c join targets t on t.id = c.target_id where c.wanted_id > c.done_id and t.url not like '%:9/'`;
    if (faulty.length > 0) {
      printFigures("cursors that wait", { cursors: await world.ctx.db.query(cursors) });
      for (const { pid, hasExited, lines } of programs)
        printFigures("program", { pid, hasExited, said: lines.filter(({ level }) => level >= 40).slice(-5) });
    }
    // The first five faulty targets are enough to show what is wrong.
    expect(faulty.slice(0, 5).map((one) => [one.temper, one.distinct, wanted(one), ...broken(one)])).toEqual([]);
    expect(late.filter(({ wasAway }) => !wasAway)).toEqual([]);
    // Events for dead targets still wait.
    expect(waiting[0]?.n).toBeGreaterThanOrEqual(BAD);
    // A killed process was sending to so many targets at most, four repositories each; so small a run is mostly
    // troubles.
    expect(duplicates).toBeLessThanOrEqual(isLarge ? expected * 0.001 : TARGETS * 4 * troubles.length);
  },
);

/** As upstream and its operator together: what was not acknowledged is sent again, with the same GUID. */
async function tellSurely(at: Parameters<typeof tell>[0], told: Parameters<typeof tell>[1]): Promise<void> {
  for (;;) {
    try {
      await tell(at, told);
      return;
    } catch (error) {
      // Nobody listens, the connection broke, or both stores are away. A refusal for another reason is a fault.
      if (!(error instanceof TypeError) && !/ answers 50\d/.test(String(error))) throw error;
      await delay(100);
    }
  }
}

/** One server for all targets: each has a path of its own. */
async function openReceiver(
  receivers: readonly Receiver[],
  isFailing: () => boolean,
): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((request, reply) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", async () => {
      const one = receivers[Number(request.url?.slice(1))];
      if (!one) throw new Error(`There is no target ${request.url}`);
      if (isFailing() && one.temper === "failing") {
        reply.writeHead(500).end("out of order");
        return;
      }
      const { repository, issue } = JSON.parse(Buffer.concat(parts).toString("utf8")) as {
        repository: ToldRepository;
        issue: { title: string };
      };
      const heard = one.heard.get(repository.id) ?? [];
      one.heard.set(repository.id, heard);
      const number = Number(issue.title);
      const at = performance.now();
      if (heard.at(-1) !== number) {
        one.distinct += 1;
        one.firstAt.set(repository.id, at);
      } else one.again.push({ firstAt: one.firstAt.get(repository.id) ?? 0, at });
      heard.push(number);
      one.accepted += 1;
      if (one.temper === "slow") await delay(SLOW_MS);
      reply.writeHead(202).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
