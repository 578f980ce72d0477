/** `npm test` opens its stores when the first file that needs them asks, and takes them down however it ends. */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { answerForStores, askForStores } from "../support/run-stores.ts";
import { answers, Home, isRunning, type Launcher } from "./launcher.ts";

const checkout = fileURLToPath(new URL("../../", import.meta.url));
const databases = JSON.stringify(join(checkout, "test/support/database.ts"));

/** The suite's own configuration, but for which files are tests. */
const CONFIG = `
  import config from ${JSON.stringify(join(checkout, "vitest.config.ts"))};
  const { projects, globalSetup, ...test } = config.test;
  const setup = globalSetup.map((file) => ${JSON.stringify(checkout)} + file);
  export default { test: { ...test, globalSetup: setup, globals: true, include: ["*.test.js"] } };
`;

const WITHOUT_STORES = `test("needs nothing", () => {});`;

const WITH_STORES = `
  import { connectTo, openTestDatabase, testRedis } from ${databases};
  test("has a migrated database", async () => {
    await using database = await openTestDatabase();
    const client = await connectTo(database.url);
    await client.query("select from issues");
    await client.end();
    console.log(JSON.stringify({ event: "opened", database: database.url, redis: testRedis().url }));
  });
`;

/** Says so before it asks, so that a test can interrupt what follows. */
const ASKING = `
  test("asks", async () => {
    console.log(JSON.stringify({ event: "asking", pid: process.pid }));
    await import(${databases});
    console.log(JSON.stringify({ event: "answered", pid: process.pid }));
    await new Promise((resolve) => setTimeout(resolve, 60_000));
  });
`;

test("a run of files without stores opens none", async () => {
  await using run = await runOf({ "without.test.js": WITHOUT_STORES });
  expect(await run.launcher.exited).toBe(0);
  expect(run.launcher.stdout).toMatch(/Tests.* 1 passed/);
  expect(run.launcher.stderr).toBe("");
});

test("files that need stores share one Postgres and one Redis, which are gone after the run", async () => {
  await using run = await runOf({
    "one.test.js": WITH_STORES,
    "other.test.js": WITH_STORES,
    "without.test.js": WITHOUT_STORES,
  });
  expect(await run.launcher.exited).toBe(0);
  const opened = run.launcher.stdout.split("\n").filter((line) => line.startsWith('{"event":"opened"'));
  const [one, other] = opened.map((line) => JSON.parse(line) as { database: string; redis: string });
  expect(new URL(String(one?.database)).host).toBe(new URL(String(other?.database)).host);
  expect(one?.database).not.toBe(other?.database);
  expect(one?.redis).toBe(other?.redis);
  expect(portsSaid(run.launcher)).toHaveLength(2);
  await expectNothingLeft(run);
});

test("stores that cannot be opened fail the run with one sentence, also when tests have passed", async () => {
  await using run = await runOf(
    { "with.test.js": WITH_STORES, "without.test.js": WITHOUT_STORES },
    { TAIN_REDIS_FROM: "nowhere" },
  );
  expect(await run.launcher.exited).toBe(1);
  expect(run.launcher.stderr).toBe("tain: TAIN_REDIS_FROM is nowhere; it can be path, deb, docker, valkey\n");
  await expectNothingLeft(run);
});

test.each(["asking", "answered"])("a run that is stopped when a file is %s leaves nothing", async (moment) => {
  await using run = await runOf({ "asking.test.js": ASKING });
  const { pid } = await run.launcher.told(moment);
  expect(await run.launcher.stop()).not.toBe(0);
  await expect.poll(() => isRunning(pid)).toBe(false);
  await expectNothingLeft(run);
});

test("files that ask at the same moment are answered by one opening", async () => {
  const stores = { databaseUrl: "postgres://one", redisUrl: "redis://one" };
  const open = vi.fn(async () => stores);
  const answering = await answerForStores(open);
  expect(await answering.opened()).toBe(undefined);
  expect(open).not.toHaveBeenCalled();
  expect(await Promise.all([askForStores(answering.socket), askForStores(answering.socket)])).toEqual([stores, stores]);
  expect(open).toHaveBeenCalledOnce();
  answering.close();
});

test("each file that asks is told why there are no stores", async () => {
  const answering = await answerForStores(() => Promise.reject(new Error("The migration failed")));
  for (let file = 1; file <= 2; file++)
    await expect(askForStores(answering.socket)).rejects.toThrow("The migration failed");
  answering.close();
});

interface Run extends AsyncDisposable {
  launcher: Launcher;
  /** Where the run has its temporary files. */
  temporary: string;
}

/** `npm test` on these files alone. */
async function runOf(files: Record<string, string>, env: NodeJS.ProcessEnv = {}): Promise<Run> {
  const inherited = /^(VITEST|TEST_|TAIN_TEST_|TAIN_COUNTS$|TAIN_POSTGRES$|CI$|FORCE_COLOR$)/;
  const ofThisRun = Object.keys(process.env).filter((name) => inherited.test(name));
  const home = await Home.open(Object.fromEntries(ofThisRun.map((name) => [name, undefined])));
  const root = join(home.path, "tests");
  const temporary = join(home.path, "temporary");
  await mkdir(root);
  await mkdir(temporary, { mode: 0o711 });
  for (const [name, text] of Object.entries({ ...files, "vitest.config.mjs": CONFIG }))
    await writeFile(join(root, name), text);
  const launcher = home.run(["test", "--root", root], { TMPDIR: temporary, NO_COLOR: "1", ...env });
  return { launcher, temporary, [Symbol.asyncDispose]: () => home[Symbol.asyncDispose]() };
}

async function expectNothingLeft({ launcher, temporary }: Run): Promise<void> {
  for (const port of portsSaid(launcher)) expect(await answers(`tcp://127.0.0.1:${port}`)).toBe(false);
  expect((await readdir(temporary)).filter((name) => name.startsWith("tain-"))).toEqual([]);
}

/** The ports on which the launcher has opened stores. */
function portsSaid({ stderr }: Launcher): string[] {
  return Array.from(stderr.matchAll(/^tain: \w+.* on 127\.0\.0\.1:(\d+)/gm), ([, port = ""]) => port);
}
