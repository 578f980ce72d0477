/**
 * What is done for one repository asks no rows of another: each statement on the path of a delivery or of a read finds
 * rows of tables that are distributed by repository through its id, in joins as well.
 */
import { expect, test, vi } from "vitest";
import { Database } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { applyDeliveries } from "../../src/sync/deliveries/apply.ts";
import { openApiWorld } from "../api/api-world.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { connectTo } from "../support/database.ts";

/** What pools, connections and transactions have in common. */
const runner: Pick<Database, "run"> = Object.getPrototypeOf(Database.prototype);

/** Notes the text of every statement that this process runs. */
function noteStatements(): { texts: Set<string> } & Disposable {
  const spy = vi.spyOn(runner, "run");
  return {
    get texts() {
      return new Set(spy.mock.calls.map(([statement]) => statement.text));
    },
    [Symbol.dispose]: () => spy.mockRestore(),
  };
}

interface PlanNode {
  "Relation Name"?: string;
  Plans?: PlanNode[];
  [property: string]: unknown;
}

const CONDITIONS = ["Index Cond", "Recheck Cond", "Filter", "Hash Cond", "Merge Cond", "Join Filter"];

/**
 * Tables of the list that a plan reads without a condition on the repository's id, in the node itself or in a join
 * above it.
 */
function unbound({ Plans = [], ...node }: PlanNode, tables: ReadonlySet<string>, isJoined = false): string[] {
  const isBound = isJoined || CONDITIONS.some((name) => String(node[name] ?? "").includes("repository_id"));
  const table = node["Relation Name"];
  const isScan = String(node["Node Type"]).includes("Scan");
  const own = table !== undefined && isScan && tables.has(table) && !isBound ? [table] : [];
  return [...own, ...Plans.flatMap((plan) => unbound(plan, tables, isBound))];
}

const DOCUMENT = `query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) {
  issues(first: 5) { totalCount nodes { title author { login } labels(first: 3) { nodes { name } } comments(first: 3) { nodes { body } } } }
  pullRequests(first: 5) { nodes { title reviews(first: 3) { nodes { state } } } }
  labels(first: 5) { nodes { name } } milestones(first: 5) { nodes { title } } } }`;

test("a delivery and a read of one repository find rows by its id alone", async () => {
  await using world = await openApiWorld({ repositories: 2, issues: 40 });
  const { ctx, upstream } = world;
  const [{ fullName } = { fullName: "" }] = world.repositories;
  const [owner, name] = fullName.split("/");
  const hooked = await fetch(`${upstream.url}/repos/${fullName}/hooks`, {
    method: "POST",
    headers: { authorization: `token ${UPSTREAM_TOKEN}`, "user-agent": "test" },
    body: JSON.stringify({
      events: ["*"],
      config: { url: `${world.url}/webhooks`, secret: ctx.config.webhookSecrets[0], content_type: "json" },
    }),
  });
  expect(hooked.status, await hooked.text()).toBe(201);
  const [row] = await ctx.db.query<{ issue: number; pull: number }>(sql`
    select min(number) filter (where not is_pull_request) as issue, min(number) filter (where is_pull_request) as pull
      from issues i join repositories r on r.id = i.repository_id where r.full_name = ${fullName} and i.deleted_at is null`);
  using noted = noteStatements();

  const live = upstream.startLive({ ratePerSecond: 0, seed: 5 });
  for (let change = 0; change < 40; change++) live.step();
  await upstream.quiet();
  const pending = await ctx.db.query<{ id: string }>(sql`select id from deliveries where status = 'pending'`);
  expect(pending.length).toBeGreaterThan(10);
  await applyDeliveries(
    ctx,
    pending.map(({ id }) => id),
  );
  const place = `/repos/${fullName}`;
  for (const path of [
    ...["", "/labels", "/milestones", "/issues?state=all", "/issues?labels=bug&sort=comments", "/pulls?state=all"],
    ...["/issues/comments", "/pulls/comments", `/issues/${row?.issue}`, `/issues/${row?.issue}/comments`],
    ...[`/pulls/${row?.pull}`, `/pulls/${row?.pull}/reviews`, `/pulls/${row?.pull}/comments`, "/assignees"],
  ])
    expect((await world.get(`${place}${path}`)).status, path).toBe(200);
  const { body } = await world.query(DOCUMENT, { owner, name });
  expect(body.errors).toBeUndefined();

  // These two cross repositories: they show that the test would notice.
  await ctx.db.query(sql`select i.number from issues i where i.title = ${"a title"}`);
  await ctx.db.query(sql`
    select l.name from issues i join issue_labels t using (number) join labels l on l.id = t.label_id where i.repository_id = ${1}`);

  const client = await connectTo(ctx.config.databaseUrl);
  const { rows } = await client.query<{ name: string }>(`
    select table_name as name from information_schema.columns
      where table_schema = 'public' and column_name = 'repository_id' and table_name not in ('deliveries', 'refresh_marks', 'problems')`);
  const tables = new Set(rows.map((one) => one.name));
  // As they are planned for tables of any size.
  await client.query("set plan_cache_mode = force_generic_plan; set enable_seqscan = off");
  const crossing: string[] = [];
  for (const [at, text] of [...noted.texts].entries()) {
    if (!/^\s*(select|with|insert|update|delete)\b/i.test(text)) continue;
    await client.query(`prepare p${at} as ${text}`);
    const values = new Set(text.match(/\$\d+/g)).size;
    const given = values === 0 ? "" : `(${Array.from({ length: values }, () => "null").join()})`;
    const { rows: plans } = await client.query(`explain (format json) execute p${at}${given}`);
    const found = unbound(plans[0]["QUERY PLAN"][0].Plan, tables);
    if (found.length > 0) crossing.push(`${[...new Set(found)].join()}: ${text.replaceAll(/\s+/g, " ").trim()}`);
  }
  await client.end();
  expect(noted.texts.size).toBeGreaterThan(40);
  expect(crossing).toEqual([
    expect.stringContaining("issues: select i.number from issues i where i.title"),
    expect.stringMatching(/^\w+(,\w+)*: select l\.name from issues i join issue_labels/),
  ]);
});
