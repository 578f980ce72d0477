import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { mutate } from "../../src/simulator/control/mutations.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { callerOf } from "../../src/simulator/quota/quota.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { compare } from "../support/comparison.ts";
import { inherited, UPSTREAM_TOKEN } from "../support/config.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { Run } from "./tain.ts";
import { tainOn, tainProcessOn } from "./tain-on.ts";

/** A mirror without a webhook, and its one repository, copied longer ago than any replica lags. */
async function openCopied() {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 11, repositories: 1, issues: 20, pulls: 8 }),
  });
  await world.mirror(world.first);
  await world.settleMarks();
  // The command's clock is the machine's: to it the copy has to be old.
  for (const table of ["issues", "pull_requests", "issue_comments", "pull_request_reviews", "labels", "users"])
    await world.ctx.db.query(
      sql`update ${sql.identifier(table)} set seen_at = seen_at - interval '1 hour', key_stamps = null`,
    );
  const [owner = "", name = ""] = world.first.split("/");
  const repository = world.simulator.world.repositoryByName(owner, name)?.repository;
  if (!repository) throw new Error("The generated repository is not there");
  return { world, repository };
}

const change = ({ simulator }: TestWorld, json: Record<string, unknown>) =>
  mutate(
    simulator.world,
    openView({ world: simulator.world, apiUrl: simulator.url, htmlUrl: simulator.htmlUrl, roleOf: () => "admin" }),
    json,
  );

function first<T>(values: Iterable<T>, fits: (value: T) => boolean = () => true): T {
  for (const value of values) if (fits(value)) return value;
  throw new Error("The generated world has none");
}

test("drift of every kind is told without a change, repaired when that is asked for, and then there is none", async () => {
  const { world, repository } = await openCopied();
  await using _ = world;
  const { rows } = repository;
  const [gone, corrupted, hidden] = [...rows.issuesByCreated.ascending()].filter((one) => !one.pull);
  if (!gone || !corrupted || !hidden) throw new Error("The generated world has too few issues");
  const comment = first(world.simulator.world.comments.values(), ({ issue }) => issue !== gone && issue !== hidden);
  const label = first(world.simulator.world.labels.values());
  change(world, { op: "deleteIssue", repository: world.first, number: gone.number });
  change(world, { op: "editComment", comment: comment.id, body: "edited behind the mirror's back" });
  change(world, { op: "editLabel", repository: world.first, label: label.name, name: "renamed-label" });
  const { db } = world.ctx;
  await db.query(sql`
    update issues
      set title = 'no', document = replace(document::text, ${JSON.stringify(corrupted.title).slice(1, -1)}, 'no')::json
      where number = ${corrupted.number}`);
  await db.query(sql`delete from issues where number = ${hidden.number}`);

  const before = await compare(world.ctx, world.simulator, world.first);
  const told = await tainProcessOn(world, ["audit", world.first, "--json"]);
  expect(told).toMatchObject({ code: 1, stderr: "" });
  expect(told.json).toMatchObject({ event: "done", audits: [{ repository: world.first, repaired: false }] });
  const kinds = told.json.audits[0].drift.map(
    ({ kind, key, drift }: Record<string, unknown>) => `${kind} ${key} ${drift}`,
  );
  expect(kinds).toEqual(
    expect.arrayContaining([
      `issue ${gone.number} gone`,
      `issue_comment ${comment.id} differs`,
      `label ${label.id} differs`,
      `issue ${corrupted.number} differs`,
      `issue ${hidden.number} absent`,
    ]),
  );
  expect(await compare(world.ctx, world.simulator, world.first)).toEqual(before);
  const listed = await tainOn(world, ["audit", "--list"]);
  expect(listed).toMatchObject({ code: 0, stderr: "" });
  expect(listed.stdout).toMatch(new RegExp(`^${world.first} +\\d+ differences +\\d+s ago +\\d+ +\\w.*; …$`, "m"));
  expect((await tainOn(world, ["audit", "--list", "no/where"])).stdout).toMatch(/^None of these has been audited yet/);
  expect((await tainOn(world, ["audit", "--list", "--repair"])).code).toBe(2);

  const repaired = await tainOn(world, ["audit", "--repair", world.first]);
  expect(repaired).toMatchObject({ code: 0, stderr: "" });
  expect(repaired.stdout).toMatch(/: \d+ differences found; .*\n/);
  expect(repaired.stdout).toContain(`  issue ${gone.number} is no more at upstream\n`);
  expect(repaired.stdout).toContain(`  issue ${hidden.number} was not in the mirror\n`);
  expect(repaired.stdout).toMatch(new RegExp(`  issue ${corrupted.number} differs in .*title`));
  expect(repaired.stdout).toContain("All of it was put right\n");
  await world.settleMarks();
  expect((await compare(world.ctx, world.simulator, world.first)).differences).toEqual([]);

  const equal = await tainOn(world, ["audit", world.first]);
  expect(equal).toMatchObject({ code: 0, stderr: "" });
  expect(equal.stdout).toContain(`${world.first}: equal to upstream; `);
});

test("what cannot be compared is said with its reason, and nothing is changed", async () => {
  const { world, repository } = await openCopied();
  await using _ = world;
  expect(await tainOn(world, ["audit", "no/where"])).toMatchObject({
    code: 1,
    stderr: "tain: no/where is not mirrored: `tain add no/where` begins to\n",
  });
  change(world, { op: "blockRepository", repository: world.first, reason: "dmca" });
  const hidden = await tainOn(world, ["audit", "--repair", world.first]);
  expect(hidden).toMatchObject({ code: 1, stdout: "" });
  expect(hidden.stderr).toContain("Nothing was changed");
  change(world, { op: "blockRepository", repository: world.first });
  expect((await compare(world.ctx, world.simulator, world.first)).differences).toEqual([]);
  await world.ctx.db.query(sql`
    update repository_syncs set state = 'backfilling' where repository_id = ${repository.id}`);
  expect((await tainOn(world, ["audit", world.first])).stderr).toContain("is being copied");
});

test("with the quota spent it waits and says until when; Ctrl-C ends it; another audit meanwhile is refused", async () => {
  const { world, repository } = await openCopied();
  await using _ = world;
  const token = world.simulator.tokens.find(UPSTREAM_TOKEN);
  if (!token) throw new Error("Upstream does not know the mirror's token");
  world.simulator.quota.setRemaining(callerOf(token, ""), "core", 0);
  const { databaseUrl, redisUrl, redisPrefix, upstreamUrl } = world.ctx.config;
  const run = new Run(["audit", world.first], {
    ...{ ...inherited, TAIN_HOME: "/nonexistent/tain", DATABASE_URL: databaseUrl, REDIS_URL: redisUrl },
    ...{ REDIS_PREFIX: redisPrefix, UPSTREAM_URL: upstreamUrl, UPSTREAM_TOKEN },
  });
  await run.said(/The core quota is spent until .*; the audit goes on then/);
  const { signal } = new AbortController();
  await expect(audit(world.ctx, { repositoryId: repository.id, repair: true, signal })).rejects.toThrow(
    `Another audit of ${world.first} is under way`,
  );
  run.signal("SIGINT");
  expect(await run.exited).toMatchObject({ code: 130 });
});
