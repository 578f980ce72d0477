import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { inherited } from "../support/config.ts";
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
