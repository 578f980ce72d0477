import { createHash } from "node:crypto";
import { openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import type { Json } from "../../src/json.ts";
import type { Kind } from "../../src/kinds/contract/kind.ts";
import { mayHaveName } from "../../src/kinds/user/kind.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { storeNames } from "../../src/mirror/store/names.ts";
import { joinObserved, type Observed, observe } from "../../src/mirror/store/observation.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { checksWhole } from "../../src/sync/checks/refresh.ts";
import { settleParts } from "../../src/sync/following/parts.ts";
import { makeEvents } from "../../src/sync/found/make.ts";
import { historyWhole } from "../../src/sync/history/refresh.ts";
import { pullListsWhole } from "../../src/sync/lists/refresh.ts";
import { peopleWhole } from "../../src/sync/people/refresh.ts";
import { NodeQuestions } from "../../src/sync/questions/node-questions.ts";
import { refsWhole } from "../../src/sync/refs/refresh.ts";
import { askedBelow, refreshAsked } from "../../src/sync/resource-lists/below.ts";
import { resourceListWholes } from "../../src/sync/resource-lists/refresh.ts";
import { refreshWhole } from "../../src/sync/wholes/whole.ts";
import { type Administrator, addressOf, administer } from "./database.ts";
import { EMPTY_TEMPLATE } from "./template.ts";

/**
 * The size of a generated world. Each size is mirrored once in a run, which takes seconds. So take one that other tests
 * take.
 */
export interface Size {
  repositories: number;
  issues: number;
}

/** A generated world that is the same each time, and a database whose mirror holds all of it. */
export interface MirroredTemplate {
  /** The database to clone. */
  name: string;
  /** Makes the same world in another simulator. No stored row names an address. */
  fill(world: Simulator["world"]): void;
}

const SEED = 7;

/**
 * The template for a world of this size. The first test file that needs it mirrors the world, while other files that
 * need the same one wait.
 */
export async function findMirroredTemplate(size: Size): Promise<MirroredTemplate> {
  const name = `${EMPTY_TEMPLATE}_${createHash("sha1").update(JSON.stringify(size)).digest("hex").slice(0, 12)}`;
  return await administer(async (admin) => {
    await admin.query("SELECT pg_advisory_lock(hashtext($1))", [name]);
    try {
      const until = (await historyEnd(admin, name)) ?? (await makeTemplate(admin, name, size));
      return { name, fill: (world) => fillWorld(world, size, until) };
    } finally {
      await admin.query("SELECT pg_advisory_unlock(hashtext($1))", [name]);
    }
  });
}

/** The last moment of the template's history, in seconds. Undefined: there is no such template. */
async function historyEnd(admin: Administrator, name: string): Promise<number | undefined> {
  const { rows } = await admin.query<{ until: string }>(
    "SELECT shobj_description(oid, 'pg_database') AS until FROM pg_database WHERE datname = $1",
    [name],
  );
  return rows[0] && Number(rows[0].until);
}

async function makeTemplate(admin: Administrator, name: string, size: Size): Promise<number> {
  const until = Math.floor(Date.now() / 1_000);
  // The template is a draft until it is whole. So a file that fails half way leaves none that looks whole.
  const draft = `${name}_draft`;
  await admin.query(`DROP DATABASE IF EXISTS ${draft} WITH (FORCE)`);
  await admin.query(`CREATE DATABASE ${draft} TEMPLATE ${EMPTY_TEMPLATE}`);
  await mirrorGenerated(addressOf(draft), size, until);
  await admin.query(`COMMENT ON DATABASE ${draft} IS '${until}'`);
  await admin.query(`ALTER DATABASE ${draft} RENAME TO ${name}`);
  return until;
}

async function mirrorGenerated(databaseUrl: string, size: Size, until: number): Promise<void> {
  await using resources = new AsyncDisposableStack();
  const upstream = resources.use(await openSimulator({ seed: SEED }));
  fillWorld(upstream.world, size, until);
  const db = openDatabase(databaseUrl, { maxConnections: 1 });
  resources.defer(() => db.close());
  const token = "token-of-the-copy";
  upstream.tokens.create({ token, login: "mirror-owner", repositories: "all" });
  await mirrorWhole({ db, clock: { now: () => new Date() } }, upstream, token);
}

function fillWorld(world: Simulator["world"], size: Size, until: number): void {
  generateWorld(world, { seed: SEED, ...size, until });
}

type State = { repository: { id: number; full_name: string; html_url: string } } & Record<string, Json>;

/** Copies upstream's whole truth into the mirror, by the mirror's own merge. The token sees all of it. */
export async function mirrorWhole(
  ctx: Pick<Context, "db" | "clock">,
  upstream: Simulator,
  token: string,
): Promise<void> {
  for (const { id, fullName } of repositoriesOf(upstream)) {
    const answer = await fetch(`${upstream.url}/-/state?repository=${fullName}`);
    const { repositories } = (await answer.json()) as { repositories: State[] };
    const [state] = repositories;
    if (!state) throw new Error(`Upstream has no state of ${fullName}`);
    const headers = { authorization: `Bearer ${token}`, "user-agent": "test" };
    const single = await fetch(`${upstream.url}/repos/${fullName}`, { headers });
    await store(ctx, upstream, "repository", (await single.json()) as Json);
    const at = { id, fullName, htmlUrl: state.repository.html_url };
    const lists: [string, Kind][] = [
      ["labels", "label"],
      ["milestones", "milestone"],
      ["issues", "issue"],
      ["pulls", "pull_request"],
      ["comments", "issue_comment"],
      ["reviews", "review"],
      ["review_comments", "review_comment"],
    ];
    for (const [list, kind] of lists) await store(ctx, upstream, kind, state[list] ?? [], at);
    await ctx.db.query(sql`
      insert into repository_syncs (repository_id, state, added_at, backfilled_at)
        values (${id}, 'live', now() - interval '1 minute', now())`);
  }
  const accounts = [...upstream.world.users.values()].filter(({ type }) => mayHaveName(type));
  const names = new Map(
    accounts.map(({ id, type, name, company }) => [id, type === "User" ? { name, company } : { name }]),
  );
  const seenAt = ctx.clock.now();
  await ctx.db.transaction((tx) => storeNames(tx, { names, seenAt, api: upstream.url }));
}

/**
 * Upstream's repositories without forks, in the order of their creation. The first one of the generator is the busiest.
 */
export function repositoriesOf({ world }: Simulator): { id: number; fullName: string; private: boolean }[] {
  return [...world.repositories.values()]
    .filter(({ fork }) => !fork)
    .map((one) => ({ id: one.id, fullName: world.fullName(one), private: one.visibility === "private" }));
}

/** Merges what upstream showed into the mirror. */
export async function store(
  ctx: Pick<Context, "db" | "clock">,
  upstream: { url: string },
  kind: Kind,
  shown: Json | Json[],
  repository?: { id: number; fullName: string; htmlUrl: string | null },
  options: { deleted?: boolean } = {},
): Promise<void> {
  const sighting = {
    api: upstream.url,
    seenAt: ctx.clock.now(),
    read: true,
    ...(repository ? { repository } : {}),
    ...options,
  };
  const observed: Observed = joinObserved([shown].flat().map((one) => observe(kind, one, sighting)));
  await ctx.db.transaction((tx) => mergeObserved(tx, observed));
}

type Shown = Parameters<typeof store> extends [unknown, ...infer Rest] ? Rest : never;

/** Does the same, and has the event told that is made of the change. */
export async function storeAndTell(
  ctx: Context,
  ...[upstream, kind, shown, repository, options]: Shown
): Promise<void> {
  await store(ctx, upstream, kind, shown, repository, options);
  await makeEvents({ ...ctx, config: { ...ctx.config, eventsMadeAfterMs: 0 } });
}

/** Asks for the jobs of all runs. They prove something once no replica can lack what is known of their run. */
async function mirrorJobs(ctx: Context, repositoryId: number): Promise<void> {
  const runs = await ctx.db.query<{ key: number }>(sql`
    update workflow_runs set seen_at = seen_at - interval '1 minute' where repository_id = ${repositoryId}
      returning id::float8 as key`);
  const now = ctx.clock.now();
  const askedAt = new Date(now.getTime() - 60_000);
  for (const { key } of runs) {
    const mark = { kind: "workflow_run" as const, repositoryId, key, askedAt, notBefore: now, keys: ["jobs"] };
    const below = askedBelow(mark);
    if (below) await refreshAsked(ctx, below, mark);
  }
}

/** Reads the parts that are mirrored only where `MIRROR` names them, of all repositories that are mirrored already. */
export async function mirrorParts(ctx: Context): Promise<void> {
  await settleParts(ctx);
  const rows = await ctx.db.query<{ id: number }>(sql`select repository_id::float8 as id from repository_syncs`);
  const nodes = new NodeQuestions(ctx);
  for (const { id } of rows) {
    for (const whole of [checksWhole, ...resourceListWholes, refsWhole, historyWhole, peopleWhole])
      await refreshWhole(ctx, nodes, whole, id);
    await mirrorJobs(ctx, id);
    // One turn reads only so many lists. A list that nothing proves waits until no replica can lag.
    for (let before = -1, held = 0; held !== before; ) {
      before = held;
      await refreshWhole(ctx, nodes, pullListsWhole, id);
      held = await ctx.db.count(sql`select from mirrored_lists where repository_id = ${id} and read_at is not null`);
    }
  }
}
