/** Postgres refuses a row of an index beyond 2,704 bytes, and strangers choose what their payloads say. */
import { randomBytes } from "node:crypto";
import { getTableName, is } from "drizzle-orm";
import { PgTable } from "drizzle-orm/pg-core";
import { expect, test } from "vitest";
import { columnsOf } from "../../db/schema/columns.ts";
import { sql } from "../../db/sql.ts";
import { objectOf } from "../../src/json.ts";
import { resources } from "../../src/kinds/registry.ts";
import * as schema from "../../src/schema.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { deliverTo } from "../receiver/receiver-world.ts";
import { connectTo, openTestDatabase } from "../support/database.ts";
import { openWorld } from "../support/world.ts";

/** Indexed texts that `fitting` does not bound, each with what bounds it. */
const BOUNDED_OTHERWISE: Record<string, string> = {
  "api_tokens.hash": "ours",
  "api_tokens.name": "a check of its column",
  "audit_log.action": "ours",
  "audit_pages.kind": "ours",
  "audit_pages.path": "ours",
  "backfill_phases.phase": "ours",
  "commits.sha": "upstream alone shows it",
  "checked_commits.sha": "src/sync/checks/heard.ts takes none that is longer",
  "deliveries.guid": "the receiver's pattern",
  "events.guid": "the receiver's pattern",
  "exclusive_work.name": "ours",
  "former_names.full_name": "src/mirror/store/rows.ts cuts it",
  "forwarded_answers.question": "a hash",
  "forwarded_answers.shown_to": "ours",
  "found_changes.aspect": "ours",
  "found_changes.kind": "ours",
  "graphql_sizes.query": "ours",
  "issue_labels.state": "a copy of issues.state",
  "listed_people.list": "ours",
  "mirrored_lists.list": "ours",
  "people_lists.list": "ours",
  "problems.key": "ours, and names as upstream or an operator says them",
  "problems.task": "ours",
  "reader_repositories.role": "a name of Postgres",
  "ref_lists.kind": "ours",
  "refresh_marks.kind": "ours",
  "refs.kind": "ours",
  "refs.name": "refNameOf takes none that is longer",
  "selections.pattern": "an operator's",
  "shapes.id": "a hash",
  "targets.scope": "ours",
  "token_owners.fingerprint": "a hash",
  "turns.purpose": "ours",
  "upkeep.task": "ours",
  "upstream_lacks.what": "ours",
  "validators.credential": "ours",
  "validators.path": "a path that we made, of names that are bounded",
};

test("each text in an index is cut to what an index holds, or is listed with what bounds it", async () => {
  await using database = await openTestDatabase();
  const client = await connectTo(database.url);
  const { rows } = await client.query<{ name: string }>(`
    select distinct c.relname || '.' || a.attname as name
      from pg_index i join pg_class c on c.oid = i.indrelid and c.relnamespace = 'public'::regnamespace
      join pg_attribute a on a.attrelid = c.oid and a.atttypid in ('text'::regtype, 'varchar'::regtype)
        and (a.attnum = any(i.indkey) or pg_get_expr(i.indexprs, i.indrelid) ~ ('\\m' || a.attname || '\\M'))
      order by name`);
  await client.end();
  const tables = Object.values(schema).flatMap((one) => (is(one, PgTable) ? [one] : []));
  // Resources, and the members of lists: src/mirror/store/rows.ts and lists.ts.
  const fitted = new Set([
    ...resources.map(({ table }) => getTableName(table)),
    ...tables.flatMap((table) =>
      "position" in columnsOf(table) && "number" in columnsOf(table) ? [getTableName(table)] : [],
    ),
  ]);
  const cut = tables.flatMap((table) =>
    Object.entries(columnsOf(table)).flatMap(([column, { type, isIndexed }]) =>
      isIndexed && type === "text" ? `${getTableName(table)}.${column}` : [],
    ),
  );
  const indexed = rows.map(({ name }) => name);
  // What the schema's description says is what the database has.
  expect(new Set(cut)).toEqual(new Set(indexed));
  const others = indexed.filter((name) => !fitted.has(name.split(".")[0] ?? ""));
  expect(new Set(others)).toEqual(new Set(Object.keys(BOUNDED_OTHERWISE)));
});

test("what no index could hold is stored and shown whole", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 2, pulls: 1 }),
  });
  await world.mirror(world.first);
  const shown = await world.ctx.upstream.get(`/repos/${world.first}`, { priority: "caller" });
  if (shown.kind !== "ok") throw new Error("Upstream does not show the repository");
  const { url } = objectOf(shown.body);
  // Postgres makes shorter what repeats itself.
  const name = randomBytes(2_000).toString("hex");
  const label = { id: 987_654, node_id: "LA_x", url: `${url}/labels/x`, name, color: "ffffff", default: false };
  const payload = { action: "created", label: { ...label, description: null }, repository: shown.body };
  const [secret = ""] = world.ctx.config.webhookSecrets;
  expect((await deliverTo(world.url, { event: "label", payload, secret })).status).toBe(202);
  await world.settle();
  expect(await world.ctx.db.query(sql`select status, attempts from deliveries where event = 'label'`)).toEqual([
    { status: "applied", attempts: expect.any(Number) },
  ]);
  const { body } = await world.get(`/repos/${world.first}/labels?per_page=100`);
  expect(body).toEqual(expect.arrayContaining([expect.objectContaining({ id: label.id, name })]));
});
