import { expect, test } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { VERSION } from "../../src/version.ts";
import { NOWHERE, testEnvironment } from "../support/config.ts";
import { openTestDatabase, testRedis } from "../support/database.ts";
import { startProgram } from "../support/program.ts";
import { Run, Tain } from "./tain.ts";
import { tain } from "./tain-on.ts";

const SENTENCE = `This is Tain ${VERSION}; the database has been migrated for 99.0.0 and later: start 99.0.0 or later, or restore a backup from before that migration`;

/** As another Tain migrates, whose migration lets this `oldest` version go on. */
async function migrateFor(oldest: string, url = ""): Promise<void> {
  const db = openDatabase(url, { maxConnections: 1 });
  try {
    await db.query(sql`
      insert into schema_migrations (version, name, oldest_tain)
        select max(version) + 1, 'newer', ${oldest} from schema_migrations`);
  } finally {
    await db.close();
  }
}

async function openEnvironment(): Promise<NodeJS.ProcessEnv> {
  const { url: database } = await openTestDatabase();
  const places = { database, redis: testRedis(), upstream: NOWHERE.upstream };
  return { ...process.env, ...testEnvironment(places), TAIN_HOME: "/nonexistent/tain" };
}

test("no command works with a database that was migrated beyond it; each says which version to start", async () => {
  const env = await openEnvironment();
  await migrateFor("99.0.0", env.DATABASE_URL);
  const commands = [
    ["add", "octo/demo"],
    ["remove", "octo/demo"],
    ["status"],
    ["backfill", "octo/demo"],
    ["audit", "octo/demo"],
    ["deliveries", "list"],
    ["deliveries", "show", "a-guid-of-it"],
    ["deliveries", "replay", "--failed"],
    ["hooks", "list"],
    ["hooks", "check"],
    ["hooks", "register"],
    ["hooks", "remove", "octo/demo"],
    ["hooks", "rotate"],
    ["token", "create"],
    ["token", "list"],
    ["token", "revoke", "0123456789ab"],
  ];
  for (const command of commands) {
    const { code, stdout, stderr } = await tain(command, env);
    expect({ command, code, stderr }).toEqual({ command, code: 1, stderr: `tain: ${SENTENCE}\n` });
    // The line of health says what is wrong, too.
    if (command[0] === "status") expect(stdout).toContain("The database's schema does not fit");
    else expect({ command, stdout }).toEqual({ command, stdout: "" });
  }
  const release = startProgram("db/migrate.ts", env);
  expect(await release.exited).toBe(1);
  expect(release.lines).toEqual([{ level: 60, msg: SENTENCE }]);
});

test("beside a newer schema that does not shut this version out, commands work and a release has nothing to do", async () => {
  const env = await openEnvironment();
  await migrateFor(VERSION, env.DATABASE_URL);
  expect(await new Run(["token", "list"], env).exited).toMatchObject({ code: 0, stderr: "" });
  const release = startProgram("db/migrate.ts", env);
  expect(await release.exited).toBe(0);
  expect(release.lines).toEqual([]);
});

test("`tain up` goes on beside a newer schema, ends with a sentence once a migration shuts it out, and does not start again", async () => {
  await using home = await Tain.open();
  await migrateFor(VERSION, home.env.DATABASE_URL);
  const run = home.start(["up"]);
  await run.said(/^Try:$/m);
  await migrateFor("99.0.0", home.env.DATABASE_URL);
  const { code, stderr } = await run.exited;
  expect(code).toBe(1);
  expect(stderr.split("\n")).toContain(`tain: ${SENTENCE}`);
  expect(stderr).not.toContain("starting it again");

  const begun = performance.now();
  const again = await home.run(["up"]);
  expect(again).toMatchObject({ code: 1, stderr: `tain: ${SENTENCE}\n` });
  // It does not wait for the simulator, which has a minute to start.
  expect(performance.now() - begun).toBeLessThan(30_000);
});
