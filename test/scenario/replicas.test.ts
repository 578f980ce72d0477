/** Several web processes behind a pooler, with replicas. Each shows every change from the moment of its commit on. */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { printFigures } from "../support/figures.ts";
import { hasPooler, openPooler, type Pooler } from "../support/pooler.ts";
import { openReplicated, type Replicated } from "../support/replicas.ts";
import { asOperator, type Body, openProcesses, openRetitling, standingsOf } from "./replica-world.ts";

/**
 * `CHANGES=40 npm test -- test/scenario/replicas.test.ts` plays it. `npm test` runs `test/db/replicas.test.ts`, which
 * holds what this rests on.
 */
const CHANGES = Number(process.env.CHANGES ?? 0);
const reason = CHANGES > 0 ? "" : "(skipped: CHANGES says how many)";
const PROCESSES = 4;

const resources = new AsyncDisposableStack();
let servers: Replicated;
let pooler: Pooler;
beforeAll(async () => {
  if (CHANGES === 0) return;
  if (!(await hasPooler())) throw new Error("This proof needs PgBouncer: install Debian's package pgbouncer");
  servers = resources.use(await openReplicated({ replicas: 2 }));
  const directory = await mkdtemp(join(tmpdir(), "tain-pooler-"));
  resources.defer(() => rm(directory, { recursive: true, force: true }));
  // PgBouncer runs as another user than root, who has to be able to enter the folder.
  await chmod(directory, 0o755);
  pooler = resources.use(await openPooler(servers.primary.url, { directory }));
}, 120_000);
afterAll(() => resources.disposeAsync());

/** How many reading statements of this process the server has answered. */
async function answeredBy(url: string, server: string): Promise<number> {
  const text = await (await fetch(`${url}/-/metrics`, asOperator)).text();
  const found = text.matchAll(/^tain_read_statements_total\{by="([^"]+)"\} (\d+)/gm);
  return Number(new Map(Array.from(found, ([, by, count]) => [by, count])).get(server) ?? 0);
}

const nameOf = (url = "") => new URL(url).host + new URL(url).pathname;

test.skipIf(CHANGES === 0)(
  `each change is shown by the next read of any process, while one of two replicas is five seconds behind ${reason}`,
  async () => {
    const { primary, replicas } = servers;
    const opened = await openProcesses({ databaseUrl: primary.url, replicas, processes: PROCESSES, pooler });
    await using world = opened.world;
    const { urls } = opened;
    const retitle = await openRetitling(world);
    const [near, far] = replicas;
    const headers = { authorization: `token ${world.token}`, "user-agent": "test" };
    const issue = `/repos/${world.first}/issues/1`;
    // A list is kept from its second reading on.
    const paths = [issue, `/repos/${world.first}/issues?state=all&sort=updated&per_page=3`];
    const wrong: string[] = [];
    let slowestMs = 0;
    const read = async (at: number, path: string, title: string) => {
      const begun = performance.now();
      const answer = await fetch(`${urls[at % PROCESSES]}${path}`, { headers });
      const body = (await answer.json()) as Body;
      slowestMs = Math.max(slowestMs, performance.now() - begun);
      const shown = Array.isArray(body) ? body.find(({ number }) => number === 1)?.title : body.title;
      if (!answer.ok || shown !== title) wrong.push(`${at}: ${path} shows ${shown} (${answer.status})`);
    };
    await far?.set("recovery_min_apply_delay", "5s");
    try {
      for (let at = 0; at < CHANGES; at++) {
        const title = `title ${at}`;
        await retitle(title);
        await Promise.all(paths.map((path, which) => read(at + which, path, title)));
        await Promise.all(paths.map((path, which) => read(at + which, path, title)));
      }
      const repositoryVersions = await standingsOf(urls[0] ?? "");
      expect(repositoryVersions).toMatchObject([
        { name: nameOf(near?.url), leftOut: null },
        { name: nameOf(far?.url), leftOut: expect.stringContaining("did not catch up") },
      ]);
      expect(await (await fetch(`${urls[0]}/-/ready`, asOperator)).json()).toMatchObject({
        ready: true,
        replicasLeftOut: [expect.stringContaining("did not catch up")],
      });
      expect(await (await fetch(`${urls[0]}/-/ready`)).json()).toEqual({ ready: true });
    } finally {
      await far?.set("recovery_min_apply_delay", "0");
    }
    const of = async (server: string) =>
      (await Promise.all(urls.map((url) => answeredBy(url, server)))).reduce((sum, count) => sum + count, 0);
    const [byReplica, byPrimary] = [await of(nameOf(near?.url)), await of("primary")];
    const figures = { changes: CHANGES, reads: 4 * CHANGES, wrong: wrong.length, slowestMs: Math.round(slowestMs) };
    printFigures("replicas", { ...figures, byReplica, byPrimary });
    expect(wrong).toEqual([]);
    expect(byReplica).toBeGreaterThan(byPrimary);
  },
  3_600_000,
);
