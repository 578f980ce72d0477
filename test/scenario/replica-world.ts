/** Web processes whose reads go to replicas, and changes that they have to show. */
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { ReplicaState } from "../../db/replica.ts";
import { sql } from "../../db/sql.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { observe } from "../../src/mirror/store/observation.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { eventually } from "../support/patience.ts";
import type { Pooler } from "../support/pooler.ts";
import { startProgramAt } from "../support/program.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const checkout = fileURLToPath(new URL("../../", import.meta.url));
const OPERATOR_TOKEN = "operator-token-of-this-test";
export const asOperator = { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } };

// biome-ignore lint/suspicious/noExplicitAny: bodies are compared, not trusted
export type Body = any;

/**
 * A mirror of one repository, and the addresses of its web processes. These are programs that read from the replicas,
 * and reach the primary through the pooler if there is one.
 */
export async function openProcesses({
  databaseUrl,
  replicas,
  processes,
  pooler = null,
}: {
  databaseUrl: string;
  replicas: readonly { url: string }[];
  processes: number;
  pooler?: Pooler | null;
}): Promise<{ world: TestWorld; urls: string[] }> {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 5, pulls: 2 }),
    env: { DATABASE_URL: databaseUrl, RATE_LIMIT_USER: "0" },
  });
  await world.mirror(world.first);
  const env = {
    ...world.env,
    ...(pooler ? { DATABASE_URL: pooler.through(databaseUrl), DATABASE_DIRECT_URL: databaseUrl } : {}),
    DATABASE_REPLICA_URLS: replicas.map(({ url }) => url).join(","),
    OPERATOR_TOKEN,
    LOG_LEVEL: "info",
  };
  const programs = Array.from({ length: processes }, () => startProgramAt(checkout, "src/web.ts", env));
  const urls = await Promise.all(programs.map(async (one) => String((await one.said("Listening")).address)));
  for (const url of urls)
    await eventually(async () =>
      expect((await standingsOf(url)).map(({ leftOut }) => leftOut)).toEqual(replicas.map(() => null)),
    );
  return { world, urls };
}

export async function standingsOf(url: string): Promise<ReplicaState[]> {
  return ((await (await fetch(`${url}/-/status`, asOperator)).json()) as { replicas: ReplicaState[] }).replicas;
}

/** Changes the title of the repository's first issue, as a worker that applies a delivery does. */
export async function openRetitling({ ctx, simulator, first }: TestWorld): Promise<(title: string) => Promise<void>> {
  const address = `${simulator.url}/repos/${first}/issues/1`;
  const headers = { authorization: `token ${UPSTREAM_TOKEN}`, "user-agent": "test" };
  const document = (await (await fetch(address, { headers })).json()) as Body;
  const [home] = await ctx.db.query<{ id: number }>(sql`select id::float8 as id from repositories`);
  const repository = { id: home?.id ?? 0, fullName: first, htmlUrl: document.html_url.replace(/\/issues\/1$/, "") };
  let updatedMs = Date.now();
  return async (title) => {
    updatedMs += 1_000;
    const changed = { ...document, title, updated_at: `${new Date(updatedMs).toISOString().slice(0, 19)}Z` };
    const at = { api: simulator.url, repository, seenAt: new Date(updatedMs), read: false };
    await ctx.db.transaction((tx) => mergeObserved(tx, observe("issue", changed, at)));
  };
}
