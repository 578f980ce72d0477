import { expect, test } from "vitest";
import { placeRepositoryHook } from "../../src/upstream/hooks/hooks.ts";
import { QuotaSpentError, UpstreamRefusedError } from "../../src/upstream/protocol/errors.ts";
import { at, json, openUpstreamWorld, quotaHeaders } from "./world.ts";

const create = { method: "POST", path: "/repos/o/n/issues", body: '{"title":"x"}' } as const;

test("a write is answered with upstream's own status, headers and body", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(
      response,
      201,
      { id: 1 },
      { location: `${world.base}/repos/o/n/issues/1`, etag: '"x"', "x-github-request-id": "A:1" },
    ),
  );
  const answer = await world.upstream.write({
    ...create,
    apiVersion: "2026-03-10",
    accept: "application/vnd.github.html+json",
  });
  expect(answer).toMatchObject({
    status: 201,
    body: '{"id":1}',
    headers: { location: `${world.base}/repos/o/n/issues/1`, etag: '"x"', "x-github-request-id": "A:1" },
    seenAt: at(0),
  });
  expect(Object.keys(answer.headers)).not.toContain("transfer-encoding");
  expect(world.asked[0]).toMatchObject({
    method: "POST",
    body: '{"title":"x"}',
    headers: {
      "content-type": "application/json",
      "x-github-api-version": "2026-03-10",
      accept: "application/vnd.github.html+json",
    },
  });
});

test.each([401, 403, 404, 307, 422, 429, 500, 502, 503, 504])(
  "%i to a write is the answer, sent once",
  async (status) => {
    await using world = await openUpstreamWorld(
      (_, response) => json(response, status, { message: `it is ${status}` }),
      { tokens: ["a", "b"] },
    );
    expect(await world.upstream.write(create)).toMatchObject({ status, body: `{"message":"it is ${status}"}` });
    expect(world.asked).toHaveLength(1);
  },
);

test("a write whose connection breaks, or that is not answered in time, is not repeated", async () => {
  await using world = await openUpstreamWorld((_, response) => void response.socket?.resetAndDestroy(), {
    limits: { headersTimeoutMs: 100 },
  });
  await expect(world.upstream.write(create)).rejects.toMatchObject({
    name: "UpstreamUnavailableError",
    outage: "interrupted",
  });
  world.play = () => {};
  await expect(world.upstream.write(create)).rejects.toMatchObject({ outage: "timed-out" });
  // A repetition, which must not come, would come in this time.
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(world.asked).toHaveLength(2);
});

test("a write that upstream limits silences the others, and nothing is sent without quota", async () => {
  await using world = await openUpstreamWorld((_, response) =>
    json(
      response,
      403,
      { message: "You have exceeded a secondary rate limit" },
      { ...quotaHeaders(4_000), "retry-after": "15" },
    ),
  );
  expect(await world.upstream.write(create)).toMatchObject({ status: 403 });
  await expect(world.upstream.write(create)).rejects.toThrow(QuotaSpentError);
  await expect(world.upstream.get("/user", { priority: "caller" })).rejects.toMatchObject({ resetAt: at(15) });
  expect(world.asked).toHaveLength(1);
});

test("a write without a body says so", async () => {
  await using world = await openUpstreamWorld((_, response) => void response.writeHead(204).end());
  expect(await world.upstream.write({ method: "DELETE", path: "/repos/o/n/hooks/1", body: null })).toMatchObject({
    status: 204,
    body: "",
  });
  expect(world.asked[0]?.headers["content-type"]).toBeUndefined();
});

const hook = {
  repository: { id: 1, fullName: "o/n" },
  url: "https://tain.example/webhooks",
  secret: 'a "secret"',
  events: ["issues", "label"],
};
const foreign = { id: 5, config: { url: "https://other.example/" } };

test("a hook is created where there is none", async () => {
  await using world = await openUpstreamWorld(({ method }, response) =>
    method === "GET" ? json(response, 200, [foreign]) : json(response, 201, { id: 9 }),
  );
  expect(await placeRepositoryHook(world.upstream, hook)).toMatchObject({ id: 9 });
  expect(world.asked.map(({ method, url }) => `${method} ${url}`)).toEqual([
    "GET /repositories/1/hooks?per_page=100",
    "POST /repositories/1/hooks",
  ]);
  expect(JSON.parse(world.asked[1]?.body ?? "")).toEqual({
    name: "web",
    active: true,
    events: ["issues", "label"],
    config: { url: hook.url, secret: hook.secret, content_type: "json", insecure_ssl: "0" },
  });
});

test("a hook that is there, on a later page, is updated with its secret", async () => {
  await using world = await openUpstreamWorld(({ method, url }, response) => {
    if (method === "PATCH") return json(response, 200, { id: 7 });
    if (url.includes("page=2")) return json(response, 200, [{ id: 7, config: { url: hook.url } }]);
    json(response, 200, [foreign], { link: `<${world.base}/repositories/1/hooks?per_page=100&page=2>; rel="next"` });
  });
  expect(await placeRepositoryHook(world.upstream, hook)).toMatchObject({ id: 7 });
  expect(world.asked.at(-1)).toMatchObject({
    method: "PATCH",
    url: "/repositories/1/hooks/7",
    body: expect.stringContaining("secret"),
  });
});

test("a hook that another process creates at the same moment is updated", async () => {
  await using world = await openUpstreamWorld(({ method }, response, count) => {
    if (method === "POST")
      return json(response, 422, {
        message: "Validation Failed",
        errors: [{ message: "Hook already exists on this repository" }],
      });
    if (method === "PATCH") return json(response, 200, { id: 7 });
    json(response, 200, count === 1 ? [] : [{ id: 7, config: { url: hook.url } }]);
  });
  expect(await placeRepositoryHook(world.upstream, hook)).toMatchObject({ id: 7 });
});

test("a hook is made in the repository of the id, whoever has its name", async () => {
  await using world = await openUpstreamWorld(({ method, url }, response) => {
    if (url.startsWith("/repos/")) return json(response, 404, { message: "Not Found" });
    method === "GET" ? json(response, 200, []) : json(response, 201, { id: 9 });
  });
  expect(await placeRepositoryHook(world.upstream, hook)).toMatchObject({ id: 9 });
  expect(world.asked.every(({ url }) => url.startsWith("/repositories/1/hooks"))).toBe(true);
});

test("a refusal is told without the secret, even if upstream repeats it", async () => {
  await using world = await openUpstreamWorld(({ method, body }, response) =>
    method === "GET"
      ? json(response, 200, [])
      : json(response, 422, { message: `Validation Failed: ${body}`, errors: [{ message: "url is not reachable" }] }),
  );
  const error = await placeRepositoryHook(world.upstream, hook).catch((reason) => reason);
  expect(error).toBeInstanceOf(UpstreamRefusedError);
  expect(error.message).toMatch(/Validation Failed: .*; url is not reachable/);
  expect(`${error.stack} ${JSON.stringify(error)}`).not.toMatch(/a [\\"]*secret/);
});

test("a token that may not manage hooks is told in words", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 404, { message: "Not Found" }));
  await expect(placeRepositoryHook(world.upstream, hook)).rejects.toThrow(
    /o\/n: no such repository, or the token may not manage its hooks/,
  );
});
