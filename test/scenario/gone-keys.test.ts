/** Keys that upstream shows only where there is something to show. Once there is nothing, an audit takes them away. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { driftCount } from "../../src/sync/audit/report.ts";
import { compare } from "../support/comparison.ts";
import { pass } from "../support/paced.ts";
import { openWorld } from "../support/world.ts";

const { signal } = new AbortController();

/** What the mirror still holds under each key, as upstream once showed it. */
const GONE = [
  { kind: "issue", table: "issues", column: "document", key: "parent_issue_url" },
  { kind: "issue", table: "issues", column: "document", key: "pinned_comment" },
  { kind: "issue_comment", table: "issue_comments", column: "document", key: "pin" },
  { kind: "issue_comment", table: "issue_comments", column: "document", key: "minimized" },
  { kind: "review_comment", table: "pull_request_review_comments", column: "document", key: "in_reply_to_id" },
  { kind: "repository", table: "repositories", column: "detail", key: "parent" },
  { kind: "repository", table: "repositories", column: "detail", key: "source" },
  { kind: "repository", table: "repositories", column: "detail", key: "template_repository" },
] as const;

test("what upstream shows no more of a resource is gone after an audit, which tells it, and is not missed by the next", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 3, repositories: 1, issues: 4, pulls: 4 }),
  });
  await world.mirror(world.first);
  await world.settleMarks();
  pass(world, 60_000);
  const { db } = world.ctx;
  const [row] = await db.query<{ id: number }>(sql`select repository_id as id from repository_syncs`);
  const repositoryId = Number(row?.id);
  for (const { kind, table, column, key } of GONE) {
    const shown = kind === "repository" ? sql`id` : sql`repository_id`;
    const set = await db.count(sql`
      with one as (select ctid from ${sql.identifier(table)}
        where ${shown} = ${repositoryId} and deleted_at is null and not (${sql.identifier(column)}::jsonb ? ${key}) limit 1)
      update ${sql.identifier(table)} t set ${sql.identifier(column)} = (${sql.identifier(column)}::jsonb || jsonb_build_object(${key}::text, 7))::json
        from one where t.ctid = one.ctid`);
    expect(set, `${kind} ${key}`).toBe(1);
  }
  const differences = async () => (await compare(world.ctx, world.simulator, world.first)).differences;
  const before = await differences();
  for (const { kind, key } of GONE)
    expect(before, `${kind} ${key}`).toContainEqual(expect.stringMatching(new RegExp(`^${kind} .*${key}`)));

  const report = await audit(world.ctx, { repositoryId, repair: true, signal });
  expect(report && driftCount(report)).toBeGreaterThan(0);
  expect(await differences()).toEqual([]);
  pass(world, 60_000);
  const next = await audit(world.ctx, { repositoryId, repair: true, signal });
  expect(next && driftCount(next)).toBe(0);
});
