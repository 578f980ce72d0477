import { sql } from "../../db/sql.ts";
import { keysOf } from "../../src/inbox/inbox.ts";
import type { Fields } from "../../src/json.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

export interface MirroredWorld extends TestWorld {
  /** The mirrored repository, as upstream shows it. */
  repository: { id: number; [key: string]: unknown };
}

/** A world without workers. It mirrors one repository, and nothing of it is stored yet. */
export async function openMirrored(env: NodeJS.ProcessEnv = {}): Promise<MirroredWorld> {
  const world = await openWorld({
    workers: false,
    env,
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 3, pulls: 1 }),
  });
  const headers = { authorization: "token test-upstream-token", "user-agent": "test" };
  const answer = await fetch(`${world.simulator.url}/repos/${world.first}`, { headers });
  const repository = (await answer.json()) as MirroredWorld["repository"];
  await world.ctx.db.query(sql`
    insert into repository_syncs (repository_id, state, added_at) values (${repository.id}, 'live', now())`);
  return { ...world, repository };
}

/** The payload that upstream sends when an issue was changed. */
export function opened(
  { repository }: MirroredWorld,
  number: number,
  title: string,
  updatedAt: string,
  more: object = {},
): object {
  return {
    action: "edited",
    issue: { id: 1_000 + number, number, title, created_at: "2026-01-01T00:00:00Z", updated_at: updatedAt, ...more },
    repository,
  };
}

let guids = 0;

/** Stores deliveries as the receiver does, each a second after the one before. Answers their ids. */
export async function arrive({ ctx, repository }: MirroredWorld, payloads: (object | string)[]): Promise<string[]> {
  const ids: string[] = [];
  for (const [index, payload] of payloads.entries()) {
    const text = typeof payload === "string" ? payload : JSON.stringify(payload);
    const repositoryId = typeof payload === "string" ? repository.id : keysOf(payload as Fields).repositoryId;
    const rows = await ctx.db.query<{ id: string }>(sql`
      insert into deliveries (hook_id, guid, event, repository_id, payload, received_at)
        values (1, ${`guid-${guids++}`}, 'issues', ${repositoryId}, ${Buffer.from(text)}, timestamptz '2026-01-02' + ${index} * interval '1 second')
        returning id`);
    ids.push(rows[0]?.id as string);
  }
  return ids;
}

/** The statuses of these deliveries, in the order of the ids. */
export const statuses = async ({ ctx }: TestWorld, ids: string[]) => {
  const rows = await ctx.db.query<{ status: string }>(sql`
    select d.status from unnest(${ids}::uuid[]) with ordinality x(id, n) join deliveries d using (id) order by n`);
  return rows.map(({ status }) => status);
};

/** `number title` of each issue. */
export const titles = async ({ ctx, repository }: MirroredWorld) => {
  const rows = await ctx.db.query<{ number: number; title: string }>(sql`
    select number, title from issues where repository_id = ${repository.id} order by number`);
  return rows.map(({ number, title }) => `${number} ${title}`);
};
