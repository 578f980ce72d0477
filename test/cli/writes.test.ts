import { expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { askAt } from "../support/asking.ts";
import { openWorld } from "../support/world.ts";
import { tainOn, tainProcessOn } from "./tain-on.ts";

test("the record of writes answers who did what: for people, for programs, and by caller and repository", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 5, pulls: 0 }),
  });
  const name = world.first;
  await world.mirror(name);
  expect((await tainProcessOn(world, ["writes", "list"])).stdout).toBe(
    "Nobody has written anything through this mirror yet\n",
  );
  const { token, id } = (await tainOn(world, ["token", "create", "--write", "--json"])).json;
  const path = `/repos/${name}/issues/1`;
  const closed = await askAt(world.url, "PATCH", path, { token, body: '{"state":"closed"}' });
  expect(closed.status).toBe(200);
  const [owner = "", repo = ""] = name.split("/");
  const repository = world.simulator.world.repositoryByName(owner, repo)?.repository.id;
  const sent = `/repositories/${repository}/issues/1`;

  const listed = await tainOn(world, ["writes", "list", "--repo", name, "--since", "1h"]);
  expect(listed.code).toBe(0);
  const [head = "", line = "", ...others] = listed.stdout.trimEnd().split("\n");
  expect(head).toMatch(/^BEGUN +WHO +TOKEN +WROTE +ASKED BY +ANSWER$/);
  expect(line).toMatch(new RegExp(`^\\d+s ago +mirror-owner +own ${id} +PATCH ${sent} +REST +200$`));
  expect(others).toEqual([]);

  const ours = await tainOn(world, ["writes", "list", "--token", token, "--json"]);
  expect(ours.json.writes).toMatchObject([
    { token: id, path: sent, outcome: "answered", status: 200, repository: name },
  ]);
  expect(ours.stdout).not.toContain(token);
  expect((await tainOn(world, ["writes", "list", "--token", "ffffffffffff", "--json"])).json).toEqual({ writes: [] });
});
