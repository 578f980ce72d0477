/**
 * A mirror of very many repositories. One was copied from upstream, and Postgres made the others by copying its rows.
 */
import { type SQL, sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { paced } from "./paced.ts";
import { openWorld, type TestWorld } from "./world.ts";

export interface ManyRepositories {
  world: TestWorld;
  /** `owner/name` of each repository but the first, which was copied from upstream. */
  names: string[];
  ids: number[];
  /** How many rows the database has, as Postgres estimates. */
  rows: number;
}

/**
 * Tables with a repository's own rows that are not copied. They are filled in another way, or say nothing about a copy.
 */
const NOT_COPIED = ["deliveries", "refresh_marks", "problems", "hook_checks", "sweeps"];
/** The share of each kind in the rows of a repository. */
const SHARES = { issues: 0.05, comments: 0.65, deliveries: 0.3 };
const DAY_MS = 86_400_000;

export async function openManyRepositories(size: { repositories: number; rows: number }): Promise<ManyRepositories> {
  const world = await openWorld({
    workers: false,
    env: { RATE_LIMIT_USER: "0", RATE_LIMIT_GRAPHQL: "0", DATABASE_CONNECTIONS: "2", READ_CONNECTIONS: "2" },
    fill: ({ world: upstream }) => {
      const { repositories } = generateWorld(upstream, { seed: 9, repositories: 1, issues: 12, pulls: 2 });
      const [{ ownerId, createdAt } = { ownerId: 0, createdAt: 0 }] = repositories;
      for (let at = 1; at < size.repositories; at++)
        upstream.addRepository({ ownerId, name: `many-${at}`, createdAt, updatedAt: createdAt });
    },
  });
  const { ctx, simulator } = world;
  const [first, ...others] = [...simulator.world.repositories.values()].filter(({ fork }) => !fork);
  if (!first) throw new Error("The generator has made no repository");
  const firstName = simulator.world.fullName(first);
  await addSelections(ctx, [firstName]);
  await paced(world, () => resolveSelections(ctx));
  await paced(world, () => backfill(ctx, { repositoryId: first.id }, new AbortController().signal));
  const names = others.map((one) => simulator.world.fullName(one));
  const ids = others.map(({ id }) => id);
  const nodeIds = others.map((one) => simulator.world.nodeId("Repository", one));
  const each = sql`unnest(${ids}::bigint[], ${names}::text[], ${nodeIds}::text[]) with ordinality as r(id, full_name, node_id, at)`;
  const copy = (table: string, from: SQL, replaced: Readonly<Record<string, SQL>>) =>
    copyRows(world, { table, from, replaced });
  const own = (table: string) => sql`${sql.identifier(table)} t`;
  await copy("repositories", sql`${own("repositories")} cross join ${each} where t.id = ${first.id}`, {
    id: sql`r.id`,
    full_name: sql`r.full_name`,
    name: sql`split_part(r.full_name, '/', 2)`,
    node_id: sql`r.node_id`,
    private: sql`false`,
  });
  const tables = await ctx.db.query<{ name: string }>(sql`
    select table_name as name from information_schema.columns
      where table_schema = 'public' and column_name = 'repository_id' order by table_name`);
  for (const { name } of tables.filter((table) => !NOT_COPIED.includes(table.name)))
    await copy(name, sql`${own(name)} cross join ${each} where t.repository_id = ${first.id}`, {
      repository_id: sql`r.id`,
    });
  const below = (id: number | SQL) => sql`'/repositories/' || ${id}::bigint || '/'`;
  await copy("validators", sql`${own("validators")} cross join ${each} where starts_with(t.path, ${below(first.id)})`, {
    path: sql`replace(t.path, ${below(first.id)}, ${below(sql`r.id`)})`,
  });
  // Further rows: the first issue many times, with comments on it, and deliveries.
  const all = sql`unnest(${[first.id, ...ids]}::bigint[]) with ordinality as r(id, at)`;
  const one = sql`where t.repository_id = ${first.id} and t.deleted_at is null and t.id is not null order by t.id limit 1`;
  const counted = (share: number) => sql`generate_series(1, ${Math.round(size.rows * share)}::int) n`;
  const longAgo = new Date(ctx.clock.now().getTime() - 2 * DAY_MS);
  const when = sql`${longAgo}::timestamptz - n * interval '1 minute'`;
  const many = (table: string, share: number, numbered: Readonly<Record<string, SQL>>) =>
    copy(table, sql`(select * from ${own(table)} ${one}) t cross join ${all} cross join ${counted(share)}`, {
      ...{ repository_id: sql`r.id`, id: sql`700000000000 + n`, created_at: when, updated_at: when },
      body: sql`'some words'`,
      ...numbered,
    });
  await many("issues", SHARES.issues, { number: sql`1000 + n`, is_pull_request: sql`false` });
  await many("issue_comments", SHARES.comments, { issue_number: sql`1001`, document: sql`'{}'` });
  await ctx.db.query(sql`
    insert into deliveries (hook_id, guid, event, repository_id, payload, status, received_at, settled_at)
      select 77, r.at || '-' || n, 'issues', r.id, '{}', 'applied', ${longAgo}, ${longAgo}
        from ${all} cross join ${counted(SHARES.deliveries)}`);
  // Only time makes anything due from here on. Audits are spread over the day, and lists have just been asked for.
  await ctx.db.query(sql`
    update repository_syncs set confirmed_at = ${ctx.clock.now()}::timestamptz + interval '1 hour',
      backfilled_at = ${ctx.clock.now()}`);
  await ctx.db.query(sql`
    insert into sweeps (repository_id, swept_at, shown_at) select repository_id, ${ctx.clock.now()}, ${longAgo} from repository_syncs`);
  await addSelections(ctx, [`${firstName.split("/")[0]}/*`]);
  await paced(world, () => resolveSelections(ctx));
  await ctx.db.query(sql`analyze`);
  const [row] = await ctx.db.query<{ rows: number }>(sql`
    select coalesce(sum(reltuples), 0)::float8 as rows from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r' and reltuples > 0`);
  return { world, names, ids, rows: row?.rows ?? 0 };
}

/** Copies the rows of a table `t`, with other values in some columns. */
export async function copyRows(
  { ctx }: TestWorld,
  { table, from, replaced }: { table: string; from: SQL; replaced: Readonly<Record<string, SQL>> },
): Promise<void> {
  const columns = await ctx.db.query<{ name: string }>(sql`
    select column_name as name from information_schema.columns
      where table_schema = 'public' and table_name = ${table} and is_generated = 'NEVER' and is_identity = 'NO'
      order by ordinal_position`);
  const names = columns.map(({ name }) => name);
  const values = names.map((name) => replaced[name] ?? sql`t.${sql.identifier(name)}`);
  await ctx.db.query(sql`
    insert into ${sql.identifier(table)} (${sql.join(names.map((name) => sql.identifier(name)))})
      select ${sql.join(values)} from ${from}`);
}
