import { once } from "node:events";
import { mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/patience.ts";
import { answers, Home, isRunning } from "./launcher.ts";

/** It has been started and stopped once. */
let used: Home;
beforeAll(async () => {
  used = await Home.open();
  const launcher = used.run(["start"]);
  await launcher.told("started");
  expect(await launcher.stop()).toBe(0);
});
afterAll(async () => await used?.[Symbol.asyncDispose]());

async function query(url: unknown, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: String(url) });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

test("start gives the app its stores on Node 26 and, asked to stop, ends the app before them and leaves nothing", async () => {
  await using home = await used.copy();
  const launcher = home.run(["start"]);
  const app = await launcher.told("started");
  expect(app).toMatchObject({
    command: "up",
    TAIN_HOME: home.path,
    node: expect.stringMatching(/^(2[6-9]|[3-9]\d)\./),
  });
  expect(
    await query(
      app.DATABASE_URL,
      "select current_database() as database, lower('ÉÖ') as lower, array(select * from unnest('{é,a,Z}'::text[]) x order by x) as sorted",
    ),
    // As C.UTF-8 has it, by whatever name this Postgres knows it: letters beyond ASCII are letters, and sorted by their
    // numbers.
  ).toEqual([{ database: "tain", lower: "éö", sorted: ["Z", "a", "é"] }]);

  // It shares the machine, so it takes little of it: Postgres by itself would ask for a quarter.
  const settings = await query(
    app.DATABASE_URL,
    "select name, setting, unit from pg_settings where name in ('io_method', 'autovacuum_max_workers', 'shared_buffers')",
  );
  const values = Object.fromEntries(
    (settings as { name: string; setting: string }[]).map(({ name, setting }) => [name, setting]),
  );
  expect(values.autovacuum_max_workers).toBe("1");
  // Postgres before 18 has no such setting, and reads pages in that way.
  expect(values.io_method ?? "sync").toBe("sync");
  expect(Number(values.shared_buffers)).toBeLessThanOrEqual((128 * 1024) / 8);

  const stores = await home.json("stores.json");
  expect(stores).toMatchObject({
    databaseUrl: app.DATABASE_URL,
    redisUrl: app.REDIS_URL,
    pids: { launcher: launcher.child.pid },
  });
  for (const secret of ["stores.json", "postgres-password", "redis/redis.conf", "app.json", "launcher.lock"]) {
    expect((await stat(join(home.path, secret))).mode & 0o777, secret).toBe(0o600);
  }
  const password = new URL(String(app.DATABASE_URL)).password;
  expect(launcher.stderr).not.toContain(password);

  expect(await launcher.stop()).toBe(0);
  expect(await launcher.told("stopping")).toMatchObject({ postgres: true, redis: true });
  expect(await isRunning(app.pid)).toBe(false);
  expect(await answers(String(app.DATABASE_URL))).toBe(false);
  expect(await answers(String(app.REDIS_URL))).toBe(false);
  expect(await readdir(home.path)).not.toEqual(
    expect.arrayContaining([expect.stringMatching(/stores\.json|app\.json|lock/)]),
  );
});

test("a second start in the same home is refused and disturbs nothing; tain commands use the running stores", async () => {
  await using home = await used.copy();
  const first = home.run(["start"]);
  const app = await first.told("started");

  const second = home.run(["start"]);
  expect(await second.exited).toBe(1);
  expect(second.stderr).toMatch(
    new RegExp(`already runs in ${home.path} \\(process ${first.child.pid}, npm start\\): stop that one first`),
  );

  const command = home.run(["tain", "status", "--json"]);
  expect(await command.exited).toBe(0);
  expect(await command.told("started")).toMatchObject({
    command: "status",
    DATABASE_URL: app.DATABASE_URL,
    REDIS_URL: app.REDIS_URL,
  });
  expect(command.stderr).toBe("");
  expect(await first.stop()).toBe(0);
});

test("a start that finds the one before still stopping waits for its end", async () => {
  await using home = await used.copy();
  const first = home.run(["start", "--held"]);
  const before = await first.told("started");
  first.child.kill("SIGTERM");
  await first.told("stopping");
  const second = home.run(["start"]);
  await until("the second waits", () =>
    second.stderr.includes(`waiting for process ${first.child.pid}, which is stopping`),
  );
  await writeFile(join(home.path, "let-go"), "");
  const after = await second.told("started");
  expect(await first.exited).toBe(0);
  expect(await isRunning(before.pid)).toBe(false);
  expect(after.DATABASE_URL).toBe(before.DATABASE_URL);
  expect(await second.stop()).toBe(0);
});

test("a Ctrl-C that arrives twice, from the terminal and from npm, is one request to stop", async () => {
  await using home = await used.copy();
  const launcher = home.run(["start", "--slow"]);
  await launcher.told("started");
  launcher.child.kill("SIGINT");
  await until("it is stopping", () => launcher.stderr.includes("stopping"));
  launcher.child.kill("SIGINT");
  expect(await launcher.exited).toBe(0);
});

test("an app that does not stop is ended when asked again, and that is not a clean stop", async () => {
  await using home = await used.copy();
  const launcher = home.run(["start", "--deaf"]);
  const app = await launcher.told("started");
  launcher.child.kill("SIGTERM");
  await until("it ends the app", () => {
    launcher.child.kill("SIGTERM");
    return launcher.stderr.includes("ending it because you asked again");
  });
  expect(await launcher.exited).toBe(1);
  expect(launcher.stderr).toContain("Tain did not stop cleanly (SIGKILL)");
  expect(await isRunning(app.pid)).toBe(false);
  expect(await answers(String(app.DATABASE_URL))).toBe(false);
});

test("started by npm, the launcher stops everything when npm is killed", async () => {
  await using home = await used.copy();
  const npm = home.throughShell(["start"]);
  const app = await npm.told("started");
  npm.child.kill("SIGKILL");
  await npm.told("stopping");
  await until("Postgres has stopped", async () => !(await answers(String(app.DATABASE_URL))));
  expect(await isRunning(app.pid)).toBe(false);
  expect(await answers(String(app.REDIS_URL))).toBe(false);
});

test("after kill -9 of the launcher the app ends, and the next start adopts both stores with what is in them", async () => {
  await using home = await used.copy();
  const killed = home.run(["start"]);
  const before = await killed.told("started");
  const { pids } = (await home.json("stores.json")) as { pids: Record<string, number> };
  await query(before.DATABASE_URL, "create table kept as select 1 as one");
  killed.child.kill("SIGKILL");
  expect(await killed.exited).toBe("SIGKILL");

  const next = home.run(["start"]);
  const after = await next.told("started");
  expect(await isRunning(before.pid)).toBe(false);
  expect(after).toMatchObject({ DATABASE_URL: before.DATABASE_URL, REDIS_URL: before.REDIS_URL });
  expect(await home.json("stores.json")).toMatchObject({ pids: { ...pids, launcher: next.child.pid } });
  expect(await query(after.DATABASE_URL, "select one from kept")).toEqual([{ one: 1 }]);

  expect(await next.stop()).toBe(0);
  expect(await answers(String(after.DATABASE_URL))).toBe(false);
  expect(await answers(String(after.REDIS_URL))).toBe(false);
});

test("after kill -9 of everything the next start recovers what was committed", async () => {
  await using home = await used.copy();
  const killed = home.run(["start", "--deaf"]);
  const before = await killed.told("started");
  await query(before.DATABASE_URL, "create table kept as select 1 as one");
  const { pids } = (await home.json("stores.json")) as { pids: Record<string, number> };
  for (const pid of [killed.child.pid, before.pid, pids.postgres, pids.redis]) process.kill(pid as number, "SIGKILL");
  await killed.exited;

  const next = home.run(["start"]);
  const after = await next.told("started");
  expect(await query(after.DATABASE_URL, "select one from kept")).toEqual([{ one: 1 }]);
  expect(next.stderr).not.toContain("was still running");
  expect(await next.stop()).toBe(0);
});

test("an app that ends by itself stops the stores and gives its exit code", async () => {
  await using home = await used.copy();
  const launcher = home.run(["start", "--crash"]);
  const app = await launcher.told("started");
  expect(await launcher.exited).toBe(7);
  expect(launcher.stderr).toContain("Tain ended by itself (exit code 7)");
  expect(await answers(String(app.DATABASE_URL))).toBe(false);
  expect(await answers(String(app.REDIS_URL))).toBe(false);
});

test.each(["postgres", "redis"])("the end of %s stops the rest, says so and is a failure", async (store) => {
  await using home = await used.copy();
  const launcher = home.run(["start"]);
  const app = await launcher.told("started");
  const { pids } = (await home.json("stores.json")) as { pids: Record<string, number> };
  process.kill(pids[store] as number, "SIGKILL");
  expect(await launcher.exited).toBe(1);
  expect(launcher.stderr).toMatch(new RegExp(`${store} ended unexpectedly; its log is .*; stopping the rest`, "i"));
  expect(await isRunning(app.pid)).toBe(false);
  expect(await answers(String(app.DATABASE_URL))).toBe(false);
  expect(await answers(String(app.REDIS_URL))).toBe(false);
});

test("without any Redis the start ends with one sentence and takes Postgres down again", async () => {
  await using home = await used.copy();
  const tools = join(home.path, "tools");
  await mkdir(tools);
  await symlink("/usr/bin/id", join(tools, "id"));
  const launcher = home.run(["start"], { PATH: tools, TAIN_REDIS_FROM: "path" });
  expect(await launcher.exited).toBe(1);
  expect(launcher.stderr).toMatch(/No Redis could be found \(TAIN_REDIS_FROM=path\): set REDIS_URL, or install/);
  const port = await readFile(join(home.path, "postgres-port"), "utf8");
  expect(await answers(`postgres://127.0.0.1:${port}`)).toBe(false);
});

test("an interrupted initdb, a taken port and the lock of a dead process are no obstacle", async () => {
  await using home = await Home.open();
  await mkdir(join(home.path, "postgres.new-1"));
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const address = taken.address();
  const port = typeof address === "object" && address ? address.port : 0;
  await writeFile(join(home.path, "postgres-port"), String(port));
  // Our own pid, but of a process that started at another time: a reused pid.
  await writeFile(
    join(home.path, "launcher.lock"),
    JSON.stringify({ pid: process.pid, birth: "1", purpose: "npm start" }),
  );

  const launcher = home.run(["start"]);
  const app = await launcher.told("started");
  expect(new URL(String(app.DATABASE_URL)).port).not.toBe(String(port));
  expect(await readdir(home.path)).not.toContain("postgres.new-1");
  expect(await launcher.stop()).toBe(0);
  taken.close();
});

test("in production embedded stores and the simulator are refused by the names of what to set", async () => {
  await using home = await Home.open();
  const bare = home.run(["start"], { NODE_ENV: "production" });
  expect(await bare.exited).toBe(1);
  expect(bare.stderr).toMatch(/set DATABASE_URL, REDIS_URL, UPSTREAM_URL, UPSTREAM_TOKEN$/m);
  const half = home.run(["start"], { NODE_ENV: "production", DATABASE_URL: "postgres://x", UPSTREAM_URL: "http://x" });
  expect(await half.exited).toBe(1);
  expect(half.stderr).toMatch(/set REDIS_URL, UPSTREAM_TOKEN$/m);
});

test("given stores are used as they are and nothing is embedded", async () => {
  await using home = await Home.open();
  const given = { DATABASE_URL: "postgres://elsewhere/mirror", REDIS_URL: "redis://elsewhere" };
  const launcher = home.run(["start"], given);
  expect(await launcher.told("started")).toMatchObject(given);
  expect(await readdir(home.path)).not.toContain("postgres");
  expect(await launcher.stop()).toBe(0);
});

test.each([
  ["a command", ["statsu"], "There is no command statsu"],
  ["an option", ["status", "--jsno"], "no option --jsno"],
])("%s of tain that is mistyped is no reason to start the stores", async (_, words, said) => {
  await using home = await Home.open({ TAIN_APP_ENTRY: "" });
  const launcher = home.run(["tain", ...words]);
  expect(await launcher.exited).toBe(2);
  expect(launcher.stderr).toContain(said);
  expect(await readdir(home.path)).toEqual([]);
});

test("a command that does not exist is answered with the ones that do", async () => {
  await using home = await Home.open();
  const launcher = home.run(["strat"]);
  expect(await launcher.exited).toBe(2);
  expect(launcher.stderr).toContain("Unknown command: strat");
  for (const command of ["start", "test", "bench", "check", "tain"]) expect(launcher.stderr).toMatch(`  ${command} `);
});
