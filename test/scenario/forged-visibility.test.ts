/** Who may see a repository? A delivery hides it at once, and only what upstream itself shows opens it again. */
import { randomUUID } from "node:crypto";
import { sign } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, expect, test } from "vitest";
import { setVisibility } from "../../src/simulator/changes/repositories.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

let world: TestWorld;
let repository: Repository;
beforeAll(async () => {
  world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 6, pulls: 2 }),
  });
  const [owner = "", name = ""] = world.first.split("/");
  const found = world.simulator.world.repositoryByName(owner, name)?.repository;
  if (!found) throw new Error("The generated repository is not there");
  repository = found;
  await world.mirror(world.first);
  await world.listen(world.first);
});
afterAll(() => world?.[Symbol.asyncDispose]());

async function anonymously(): Promise<number> {
  const answer = await fetch(`${world.url}/repos/${world.first}/issues`, { headers: { "user-agent": "test" } });
  await answer.body?.cancel();
  return answer.status;
}

/** Sends a delivery as somebody who has the secret, but is not upstream. */
async function forge(event: string, changes: object, updatedAt: Date): Promise<void> {
  const { body: shown } = await world.get(`/repos/${world.first}`);
  const changed = { ...(shown as object), ...changes, updated_at: updatedAt.toISOString().replace(/\.\d+/, "") };
  const payload = JSON.stringify({ action: event, repository: changed, sender: { id: 1, login: "mallory" } });
  const answer = await fetch(`${world.url}/webhooks`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-github-event": event,
      "x-github-delivery": randomUUID(),
      "x-hub-signature-256": await sign(world.ctx.config.webhookSecrets[0] as string, payload),
    },
    body: payload,
  });
  expect(answer.status).toBe(202);
  await world.settle();
}

test("a repository is private to anonymous callers as soon as a webhook says so", async () => {
  expect(await anonymously()).toBe(200);
  setVisibility(world.simulator.world, repository.ownerId, repository, "private");
  await world.settle();
  expect(await anonymously()).toBe(404);
});

test("a signed delivery does not make a private repository public, whatever moment it claims, and upstream is asked", async () => {
  await world.settleMarks();
  for (const ahead of [1_000, 24 * 3_600_000]) {
    const at = new Date(world.ctx.clock.now().getTime() + ahead);
    await forge("public", { private: false, visibility: "public" }, at);
    expect(await anonymously()).toBe(404);
    await world.settleMarks();
    expect(await anonymously()).toBe(404);
    const { body } = await world.get(`/repos/${world.first}`);
    expect(body).toMatchObject({ private: true, visibility: "private" });
  }
});

test("a repository that is public again at upstream is shown once upstream was read", async () => {
  setVisibility(world.simulator.world, repository.ownerId, repository, "public");
  await world.settleMarks();
  expect(await anonymously()).toBe(200);
});
