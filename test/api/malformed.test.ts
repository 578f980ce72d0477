import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { askAt } from "../support/asking.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 1, issues: 10 });
});
afterAll(() => world?.[Symbol.asyncDispose]());

test("a path with a broken percent-encoding is answered in the dialect's shape of an error", async () => {
  for (const method of ["GET", "POST"]) {
    const answer = await askAt(world.url, method, "/repos/a%E0/b");
    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({
      message: "Bad Request: '/repos/a%E0/b' is not a valid url component",
      documentation_url: "https://docs.github.com/rest",
      status: "400",
    });
  }
});

test.each([
  ["what is no HTTP", "GARBAGE\r\n\r\n", 400, "Client Error"],
  ["a header that is none", "GET / HTTP/1.1\r\nHost: x\r\nBad Header: y\r\n\r\n", 400, "Client Error"],
  [
    "headers that are too long",
    `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${"y".repeat(40_000)}\r\n\r\n`,
    431,
    "Exceeded maximum allowed HTTP header size",
  ],
])("%s is answered so, too, and its connection closed", async (_what, sent, status, message) => {
  const { head, body } = await say(sent);
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(head).toMatch(/^Connection: close$/m);
  expect(JSON.parse(body)).toMatchObject({ message, status: String(status) });
});

test("a method that nobody serves", async () => {
  const { head, body } = await say("TRACE /user HTTP/1.1\r\nHost: x\r\nUser-Agent: t\r\nConnection: close\r\n\r\n");
  expect(head).toMatch(/^HTTP\/1.1 404 /);
  expect(JSON.parse(body).message).toBe("Not Found");
});

test("a whole address as the target, as a proxy is asked", async () => {
  const { head, body } = await say(
    `GET ${world.url}/zen HTTP/1.1\r\nHost: x\r\nUser-Agent: t\r\nConnection: close\r\n\r\n`,
  );
  expect(head).toMatch(/^HTTP\/1.1 200 /);
  expect(body).toBe("A mirror shows what is there.");
});

test("a body that is too large: the caller gets to read why, and the connection stays", async () => {
  for (const path of ["/graphql", `/repos/${world.repositories[0]?.fullName}/issues`]) {
    const headers = { authorization: `Bearer ${world.token}`, "user-agent": "test" };
    const asking = request(world.url + path, { method: "POST", headers });
    asking.end("x".repeat(5 * 1024 * 1024));
    const [answer] = await once(asking, "response");
    expect([answer.statusCode, answer.headers.connection]).toEqual([413, "keep-alive"]);
    expect(JSON.parse((await answer.toArray()).join(""))).toMatchObject({ message: "Request body is too large" });
  }
});

test("an address that no client could read back from an answer: 414", async () => {
  const answer = await askAt(world.url, "GET", `/issues?filter=${"x".repeat(8_300)}`);
  expect([answer.status, answer.body.message]).toEqual([
    414,
    "URI Too Long: send at most 8,192 bytes of path and query",
  ]);
});

test.each([
  ["links of which only one fits", "x".repeat(7_000), /^<[^>]+page=3>; rel="next"$/],
  ["links that all fit", "x".repeat(2_000), /rel="next".*rel="prev"/],
])("%s into the head of an answer that clients read", async (_what, odd, link) => {
  const list = `/repos/${world.repositories[0]?.fullName}/issues?state=all&per_page=1&page=2&sort=${odd}`;
  const answer = await world.get(list);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("link")).toMatch(link);
});

test("links of which none fits: 414", async () => {
  const list = `/repos/${world.repositories[0]?.fullName}/issues?state=all&per_page=1&page=2&sort=${"(".repeat(5_000)}`;
  const answer = await world.get(list);
  expect([answer.status, answer.body.message]).toEqual([
    414,
    "URI Too Long: the links to other pages would be longer than clients read",
  ]);
});

test("a Content-Type that cannot be read: 415", async () => {
  const headers = { "content-type": "json" };
  const answer = await world.send("POST", "/graphql", { body: "{}", headers });
  expect([answer.status, answer.body.message]).toEqual([415, "Bad Request"]);
});

/** What the server answers until it closes the connection. */
async function say(sent: string): Promise<{ head: string; body: string }> {
  const { hostname, port } = new URL(world.url);
  const socket = connect(Number(port), hostname);
  socket.write(sent);
  const text = (await socket.setEncoding("utf8").toArray()).join("");
  const at = text.indexOf("\r\n\r\n");
  return { head: text.slice(0, at).replaceAll("\r\n", "\n"), body: text.slice(at + 4) };
}
