import { expect, test } from "vitest";
import { openWorld } from "../support/world.ts";

test("a path with a broken percent-encoding is answered in the dialect's shape of an error", async () => {
  await using world = await openWorld();
  const response = await fetch(`${world.url}/repos/a%E0/b`, { headers: { "user-agent": "test" } });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ message: expect.stringContaining("Bad Request"), status: "400" });
});
