import { expect, test } from "vitest";
import type { Answered } from "../support/asking.ts";
import { openWorld } from "../support/world.ts";
import { openApiWorld } from "./api-world.ts";

const FORWARDED = {
  "x-forwarded-for": "203.0.113.9",
  "x-forwarded-proto": "https",
  "x-forwarded-host": "api.example.com",
};

test("what a proxy forwards is believed of those that were named, and of nobody else", async () => {
  await using trusting = await openWorld({ workers: false, env: { TRUSTED_PROXIES: "loopback, 10.0.0.0/8" } });
  await using wary = await openWorld({ workers: false, env: { TRUSTED_PROXIES: "192.0.2.1" } });
  await using alone = await openWorld({ workers: false });
  const root = async (world: typeof alone, headers: Record<string, string> = FORWARDED) =>
    ((await world.get("/", headers)).body as { current_user_url: string }).current_user_url;
  expect(await root(trusting)).toBe("https://api.example.com/user");
  expect(await root(trusting, { ...FORWARDED, "x-forwarded-for": "203.0.113.9, 10.1.2.3" })).toBe(
    "https://api.example.com/user",
  );
  expect(await root(trusting, {})).toBe(`${trusting.url}/user`);
  expect(await root(wary)).toBe(`${wary.url}/user`);
  expect(await root(alone)).toBe(`${alone.url}/user`);

  // The address is whose quota a stranger spends.
  const used = async (world: typeof alone, address: string) => {
    const answer = await fetch(`${world.url}/versions`, { headers: { "user-agent": "t", "x-forwarded-for": address } });
    return answer.headers.get("x-ratelimit-used");
  };
  expect([await used(trusting, "203.0.113.1"), await used(trusting, "203.0.114.1")]).toEqual(["1", "1"]);
  expect([await used(wary, "203.0.113.1"), await used(wary, "203.0.114.1")]).toEqual(["1", "2"]);
});

test("PUBLIC_URL wins over whatever is forwarded", async () => {
  await using world = await openWorld({
    workers: false,
    env: { TRUSTED_PROXIES: "loopback", PUBLIC_URL: "https://tain.example.com" },
  });
  const { body } = await world.get("/", FORWARDED);
  expect(body).toHaveProperty("current_user_url", "https://tain.example.com/user");
});

test("what a proxy says of one request is never shown to another, nor where an answer is kept", async () => {
  await using world = await openApiWorld({ repositories: 1, issues: 10, env: { TRUSTED_PROXIES: "loopback" } });
  const path = `/repos/${world.repositories[0]?.fullName}/labels`;
  const apiIn = (answer: Answered) => new URL(answer.body[0].url).origin;
  for (let time = 0; time < 4; time++)
    expect(apiIn(await world.get(path, { headers: FORWARDED }))).toBe("https://api.example.com");
  for (let time = 0; time < 4; time++) expect(apiIn(await world.get(path))).toBe(world.url);
  expect(apiIn(await world.get(path, { headers: FORWARDED }))).toBe("https://api.example.com");
});
