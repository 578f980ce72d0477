import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parseConfig } from "../../src/config.ts";
import { reasonOf } from "../../src/failure.ts";
import { inherited, testEnvironment } from "../support/config.ts";
import { openTestDatabase } from "../support/database.ts";
import { openWorld } from "../support/world.ts";
import { tainProcessOn } from "./tain-on.ts";

async function fileOf(text: string): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), "tain-secret-"));
  onTestFinished(() => rm(home, { recursive: true }));
  const path = join(home, "secret");
  await writeFile(path, `${text}\n`);
  return path;
}

test("a command finds its stores and its token by files", async () => {
  await using world = await openWorld({ workers: false });
  const { databaseUrl, redisUrl, upstreamTokens } = world.ctx.config;
  const { code, stdout, stderr } = await tainProcessOn(world, ["status"], {
    ...{ DATABASE_URL: "", DATABASE_URL_FILE: await fileOf(databaseUrl) },
    ...{ REDIS_URL: "", REDIS_URL_FILE: await fileOf(redisUrl) },
    ...{ UPSTREAM_TOKEN: "", UPSTREAM_TOKEN_FILE: await fileOf(upstreamTokens.join(",")) },
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("Nothing is mirrored yet");
});

test("the migration finds its database by a file", async () => {
  await using database = await openTestDatabase();
  const env = { ...inherited, DATABASE_URL_FILE: await fileOf(database.url) };
  const { stderr } = await promisify(execFile)(process.execPath, ["db/migrate.ts"], { env });
  expect(stderr).toBe("");
});

test("the migration refuses what the other processes refuse, in their words", async () => {
  const others = {
    ...testEnvironment({ database: "", redis: { url: "redis://a", prefix: "{t}" }, upstream: "http://a" }),
    DATABASE_URL: undefined,
  };
  const absent = join(tmpdir(), "tain-no-such-secret");
  const file = await fileOf("postgres://a/b");
  const cases: [env: NodeJS.ProcessEnv, problems: string[]][] = [
    [{ DATABASE_URL_FILE: absent }, [`DATABASE_URL_FILE names a file that cannot be read: ${absent} (ENOENT)`]],
    [
      { DATABASE_URL: "postgres://a/b", DATABASE_URL_FILE: file, DATABASE_DIRECT_URL_FILE: await fileOf("") },
      [
        "DATABASE_URL_FILE is set beside DATABASE_URL: give only one of them",
        expect.stringMatching(/^DATABASE_DIRECT_URL_FILE names a file that cannot be read: .* \(it is empty\)$/),
      ],
    ],
  ];
  for (const [env, problems] of cases) {
    const settings = { ...inherited, ...env };
    const release = promisify(execFile)(process.execPath, ["db/migrate.ts"], { env: settings });
    const { code, stderr } = await refusalOf(release);
    expect({ code, lines: stderr.trimEnd().split("\n  ") }).toEqual({ code: 1, lines: ["Cannot start:", ...problems] });
    expect(thrown(() => parseConfig({ ...others, ...env }))).toBe(stderr.trimEnd());
    const command = promisify(execFile)(process.execPath, ["src/cli/main.ts", "migrate", "--plan"], { env: settings });
    const refused = await refusalOf(command);
    expect({
      ...refused,
      stderr: refused.stderr
        .trimEnd()
        .replace(/^tain: /, "")
        .split("; "),
    }).toEqual({
      code: 1,
      stderr: problems,
    });
  }
});

async function refusalOf(run: Promise<unknown>): Promise<{ code: number; stderr: string }> {
  return await run.then(
    () => ({ code: 0, stderr: "" }),
    ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
  );
}

function thrown(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return reasonOf(error);
  }
  throw new Error("It was not refused");
}
