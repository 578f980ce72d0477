/** A resource that a delivery calls deleted is hidden at once. It comes back if upstream shows it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { hookSecret } from "../../src/config/hook-secrets.ts";
import { deleteComment } from "../../src/simulator/changes/comments.ts";
import { deleteRepository } from "../../src/simulator/changes/repositories.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import { forge } from "../support/forging.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

let world: TestWorld;
let repositories: Repository[];
let names: string[];
beforeAll(async () => {
  world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 21, repositories: 2, issues: 12, pulls: 6 }),
    env: { RATE_LIMIT_ANONYMOUS: "0" },
  });
  const upstream = world.simulator.world;
  repositories = [...upstream.repositories.values()].filter((one) => !one.fork && one.visibility === "public");
  names = repositories.map((one) => upstream.fullName(one));
  await world.mirror(...names);
  await world.listen(...names);
  await world.settleMarks();
});
afterAll(() => world?.[Symbol.asyncDispose]());

type Fields = Record<string, unknown>;
const sender = { id: 1, login: "mallory" };
const bodyOf = async (path: string) => (await world.get(path)).body as Fields;
const shownRepository = async (at = 0) => await bodyOf(`/repos/${names[at]}`);

async function anonymously(path: string): Promise<number> {
  const answer = await fetch(`${world.url}${path}`, { headers: { "user-agent": "test" } });
  await answer.body?.cancel();
  return answer.status;
}

async function states(): Promise<string[]> {
  const ids = repositories.map(({ id }) => id);
  const rows = await world.ctx.db.query<{ state: string }>(sql`
    select state from repository_syncs where repository_id = any(${ids}::bigint[]) order by array_position(${ids}::bigint[], repository_id)`);
  return rows.map(({ state }) => state);
}

describe("the event's name, which nobody signs", () => {
  test("does not make a deletion of a star that was taken back", async () => {
    const star = { action: "deleted", starred_at: null, repository: await shownRepository(), sender };
    expect(await forge(world, "repository", star)).toEqual({
      status: "ignored",
      reason: expect.stringContaining("starred_at"),
    });
    expect(await anonymously(`/repos/${names[0]}`)).toBe(200);
    expect(await states()).toEqual(["live", "live"]);
  });

  test("does not make one event's action another's", async () => {
    const watch = { action: "started", repository: await shownRepository(), sender };
    expect(await forge(world, "repository", watch)).toMatchObject({ status: "ignored" });
    expect(await forge(world, "public", watch)).toMatchObject({ status: "ignored" });
    const [issue] = (await world.get(`/repos/${names[0]}/issues`)).body as unknown as Fields[];
    const comment = { id: 1, body: "x" };
    const deleted = { action: "deleted", issue, comment, repository: await shownRepository(), sender };
    expect(await forge(world, "issues", deleted)).toMatchObject({ status: "ignored" });
    expect(await anonymously(`/repos/${names[0]}/issues/${issue?.number}`)).toBe(200);
  });
});

test("a repository that is said to be deleted, and is not, is hidden and comes back with everything", async () => {
  const before = await bodyOf(`/repos/${names[0]}/issues?state=all&per_page=100`);
  const deletion = { action: "deleted", repository: await shownRepository(), sender };
  expect(await forge(world, "repository", deletion)).toMatchObject({ status: "applied" });
  expect(await anonymously(`/repos/${names[0]}`)).toBe(404);
  expect(await states()).toEqual(["paused", "live"]);
  await world.settleMarks();
  expect(await states()).toEqual(["live", "live"]);
  expect(await anonymously(`/repos/${names[0]}`)).toBe(200);
  expect(await bodyOf(`/repos/${names[0]}/issues?state=all&per_page=100`)).toEqual(before);
});

test("an issue and a comment that are said to be deleted, and are not, are hidden and come back", async () => {
  const comments = (await bodyOf(`/repos/${names[0]}/issues/comments`)) as unknown as Fields[];
  const comment = comments.find(({ html_url }) => String(html_url).includes("/issues/"));
  const at = `/repos/${names[0]}/issues/comments/${comment?.id}`;
  const issuePath = new URL(String(comment?.issue_url)).pathname;
  const issue = await bodyOf(issuePath);
  const common = { action: "deleted", repository: await shownRepository(), sender };
  await forge(world, "issue_comment", { ...common, issue, comment });
  expect(await anonymously(at)).toBe(404);
  await world.settleMarks();
  expect(await bodyOf(at)).toEqual(comment);
  await forge(world, "issues", { ...common, issue });
  expect([404, 410]).toContain(await anonymously(issuePath));
  await world.settleMarks();
  expect(await bodyOf(issuePath)).toEqual(issue);
  expect(await bodyOf(at)).toEqual(comment);
});

test("a delivery of one repository changes nothing of another that is mirrored itself", async () => {
  const [pull] = (await bodyOf(`/repos/${names[0]}/pulls?state=all`)) as unknown as (Fields & { head: Fields })[];
  const [before, other] = [await shownRepository(1), await shownRepository(1)];
  const repo = { ...other, private: true, visibility: "private", name: "stolen", full_name: `${names[1]}-stolen` };
  const changed = { ...pull, head: { ...pull?.head, repo } };
  const payload = {
    action: "edited",
    number: pull?.number,
    pull_request: changed,
    repository: await shownRepository(),
    sender,
  };
  expect(await forge(world, "pull_request", payload)).toMatchObject({ status: "applied" });
  expect(await anonymously(`/repos/${names[1]}`)).toBe(200);
  expect(await shownRepository(1)).toEqual(before);
  await world.settleMarks();
});

test("of a payload that names two repositories the last counts, for its signer as for the mirror", async () => {
  const holder = { type: "repository", id: Number((await shownRepository(0)).id) } as const;
  const secret = hookSecret(world.ctx.config.webhookSecrets[0] ?? "", holder);
  const headers = {
    "x-github-hook-installation-target-type": holder.type,
    "x-github-hook-installation-target-id": String(holder.id),
  };
  const [a, b] = [await shownRepository(0), await shownRepository(1)];
  const head = `{"action":"edited","filling":"${"x".repeat(5_000)}","repository":${JSON.stringify(a)}`;
  const body = `${head},"sender":{"id":1,"login":"mallory"}, "repository" : ${JSON.stringify({ ...b, private: true })}}`;
  // The receiver answers 400.
  await expect(forge(world, "repository", body, { secret, headers })).rejects.toThrow("expected 400");
  expect(await anonymously(`/repos/${names[1]}`)).toBe(200);
});

test("a comment that was deleted stays so", async () => {
  const upstream = world.simulator.world;
  const [shown] = (await bodyOf(`/repos/${names[0]}/issues/comments`)) as unknown as Fields[];
  const comment = upstream.comments.get(Number(shown?.id));
  if (!comment) throw new Error("There is no comment");
  deleteComment(upstream, repositories[0]?.ownerId ?? 0, comment);
  await world.settleMarks();
  expect((await world.get(`/repos/${names[0]}/issues/comments/${shown?.id}`)).status).toBe(404);
});

test("a repository that was deleted is gone as soon as upstream was asked", async () => {
  const [first] = repositories;
  if (!first) throw new Error("There is no repository");
  const shown = await shownRepository(0);
  deleteRepository(world.simulator.world, first.ownerId, first);
  // Upstream tells it to Apps and organisations alone.
  await forge(world, "repository", { action: "deleted", repository: shown, sender });
  await world.settleMarks();
  expect(await states()).toEqual(["gone", "live"]);
});
