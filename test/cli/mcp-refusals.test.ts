import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { documentIn, refusal } from "../../src/cli/mcp/api/faults.ts";
import { freshnessIn, freshnessOf } from "../../src/cli/mcp/api/freshness.ts";
import { Texts } from "../../src/cli/mcp/tools/texts.ts";
import { NOWHERE } from "../support/config.ts";
import { agentAt, environment, serveAgents, startAgent } from "./agent.ts";
import { Run } from "./tain.ts";
import { tain } from "./tain-on.ts";

const TOKEN = "tain_OfThisTest";

/** What stands in a mirror's place. */
async function openStandIn(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ url: string; asked: IncomingMessage[]; close(): Promise<void> }> {
  const asked: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    asked.push(request);
    answer(request, response);
  }).listen(0, "127.0.0.1");
  const close = async () => {
    if (!server.listening) return;
    server.closeAllConnections();
    await once(server.close(), "close");
  };
  onTestFinished(close);
  await once(server, "listening");
  const address = server.address();
  return { url: `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`, asked, close };
}

const start = (url: string, args: readonly string[] = []) =>
  startAgent(["--url", url, ...args], { env: { TAIN_TOKEN: TOKEN } });
const asking = { repository: "octo/demo" };

test("a mirror that is down is told as such", async () => {
  // A port at which somebody listened until now.
  const { url, close } = await openStandIn(() => {});
  await close();
  await using agent = await start(url, ["--write"]);
  const { error } = (await agent.call("get_repository", asking)).fields;
  expect(error).toMatchObject({ kind: "mirror_away", status: null, retry_after_seconds: null });
  expect(error.message).toMatch(/^The mirror at http:\/\/127\.0\.0\.1:\d+ cannot be reached \(.*ECONNREFUSED.*\)\.$/);
  const write = (await agent.call("create_issue", { ...asking, title: "A title" })).fields.error;
  expect(write.message).toMatch(/Read what was to be changed before you write again/);
});

test.each([
  ["a website", 200, {}, "<h1>Welcome</h1>", "failed", /answers no JSON: is it a mirror's address/],
  ["a proxy's page", 502, {}, "<h1>Bad gateway</h1>", "upstream_away", /no reason was given/],
  ["a busy mirror", 503, { "retry-after": "7" }, '{"message":"Busy"}', "busy", /\(Busy\)\. Ask again in 7s/],
  ["a broken mirror", 500, {}, '{"message":"Server Error"}', "failed", /failed \(500, Server Error\)/],
  ["a deleted issue", 410, {}, '{"message":"This issue was deleted"}', "gone", /is gone: This issue was deleted/],
])("%s in the mirror's place is told as what it is", async (_what, status, headers, body, kind, message) => {
  const { url } = await openStandIn((_, response) => void response.writeHead(status, headers).end(body));
  await using agent = await start(url);
  const { isError, fields } = await agent.call("get_repository", asking);
  expect({ isError, kind: fields.error.kind }).toEqual({ isError: true, kind });
  expect(fields.error.message).toMatch(message);
});

test("an answer that does not end is not held in memory", async () => {
  const { url } = await openStandIn((request, response) => {
    const piece = Buffer.alloc(1024 * 1024, " ");
    const write = () => {
      while (!request.socket.destroyed && response.write(piece));
    };
    response.on("drain", write);
    write();
  });
  await using agent = await start(url);
  expect((await agent.call("get_repository", asking)).fields.error).toMatchObject({ kind: "too_large" });
});

test("the token follows no redirect to another server", async () => {
  const other = await openStandIn((_, response) => void response.end("{}"));
  const first = await openStandIn((_, response) => {
    response.writeHead(301, { location: `${other.url}/elsewhere` }).end();
  });
  await using agent = await start(first.url);
  await agent.call("get_repository", asking);
  expect(first.asked[0]?.headers.authorization).toBe(`Bearer ${TOKEN}`);
  expect(other.asked.map(({ headers }) => headers.authorization)).toEqual([undefined]);
});

test("what a tool does not take is refused, and the mirror is not asked", async () => {
  const { url, asked } = await openStandIn((_, response) => void response.end("{}"));
  await using agent = await start(url);
  for (const [tool, given] of [
    ["get_repository", { repository: "../user" }],
    ["get_repository", { repository: "octo/.." }],
    ["get_repository", { repository: "octo/demo/issues" }],
    ["get_issue", { ...asking, number: 0 }],
    ["get_issue", { ...asking, number: 1, max_text: 65_537 }],
    ["list_issues", { ...asking, per_page: 101 }],
    ["list_issues", { ...asking, colour: "red" }],
    ["list_issues", { ...asking, labels: Array.from({ length: 500 }, () => "bug") }],
    ["list_repositories", { owner: "a/b" }],
    ["search_issues", { query: "x".repeat(1_025) }],
  ] as const) {
    const { isError, text } = await agent.call(tool, given);
    expect([tool, given, isError, text]).toEqual([tool, given, true, expect.stringMatching(/Invalid arguments/)]);
  }
  expect(asked).toEqual([]);
});

test("an agent that asks for too much at once is told so, and the rest is answered", async () => {
  const held: ServerResponse[] = [];
  let isHolding = true;
  const { url } = await openStandIn((_, response) => void (isHolding ? held.push(response) : response.end("{}")));
  await using agent = await start(url);
  const calls = Array.from({ length: 40 }, () => agent.call("get_repository", asking));
  // Four are under way and 32 wait, so four are refused before any is answered.
  const busy = await Promise.any(calls);
  expect(busy.fields.error).toMatchObject({ kind: "busy", retry_after_seconds: 5 });
  isHolding = false;
  for (const response of held) response.end("{}");
  const answers = await Promise.all(calls);
  expect(answers.filter(({ isError }) => isError).length).toBe(4);
});

test("stdio ends with its agent, and on a signal, with status 0", async () => {
  const signalled = new Run(["mcp", "--url", NOWHERE.upstream], environment({ TAIN_TOKEN: TOKEN }));
  // Its input is closed from the beginning.
  expect(await signalled.exited).toEqual({ code: 0, stdout: "", stderr: "" });
  await using server = await serveAgents(["--url", NOWHERE.upstream]);
  server.run.signal("SIGTERM");
  expect(await server.run.exited).toMatchObject({ code: 0, stdout: "" });
});

test.each([
  [["--http", "0:0:0"], "--http 0:0:0 is neither a port nor HOST:PORT"],
  [["--http", "70000"], "--http 70000 is neither a port nor HOST:PORT"],
  [["--url", "nowhere"], "--url nowhere is no address"],
  [["--url", "ftp://tain.example"], "--url ftp://tain.example begins with http:// or https://"],
  [["--url", "http://me:secret@tain.example"], "--url takes no password: TAIN_TOKEN is what a mirror is shown"],
  [["--url", "http://tain.example"], "--url needs TAIN_TOKEN in the environment: a token of that mirror's"],
])("tain mcp %j makes no sense, and it is said why", async (args, message) => {
  expect(await tain(["mcp", ...args], environment())).toEqual({ code: 2, stdout: "", stderr: `tain: ${message}\n` });
});

test("a token that HTTP could not send is refused, and not repeated", async () => {
  const { code, stderr } = await tain(["mcp", "--url", NOWHERE.upstream], environment({ TAIN_TOKEN: "tain_a\nb" }));
  expect([code, stderr]).toEqual([2, "tain: TAIN_TOKEN is no token: see what it holds\n"]);
});

test("without --url it serves the mirror that runs here, and says how to begin if there is none", async () => {
  const { code, stderr } = await tain(["mcp"], environment());
  expect([code, stderr]).toEqual([1, expect.stringMatching(/Tain has not run in \/nonexistent\/tain yet/)]);
});

test("over HTTP, what is no call of a tool is refused before the mirror is asked", async () => {
  const { url, asked } = await openStandIn((_, response) => void response.end("{}"));
  await using server = await serveAgents(["--url", url]);
  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
  const send = async (init: { method?: string; body?: string; headers?: Record<string, string> }, at = server.url) => {
    const method = init.method ?? "POST";
    const headers = {
      authorization: `Bearer ${TOKEN}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...init.headers,
    };
    const body = method === "POST" ? (init.body ?? JSON.stringify(LIST)) : null;
    return (await fetch(at, { method, headers, body })).status;
  };
  const LIST = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  expect(await send({})).toBe(200);
  expect(await send({ headers: { authorization: "" } })).toBe(401);
  expect(await send({ headers: { authorization: "Basic eDp5" } })).toBe(401);
  // A page whose name was made to lead here, one in a sandbox, and one of this machine.
  expect(await send({ headers: { origin: "http://rebound.example:8090" } })).toBe(403);
  expect(await send({ headers: { origin: "null" } })).toBe(403);
  expect(await send({ headers: { origin: "http://localhost:5173" } })).toBe(200);
  expect(await send({ body: "x".repeat(512 * 1024 + 1) })).toBe(413);
  expect(await send({ body: "no JSON" })).toBe(400);
  expect(await send({ headers: { "content-type": "text/plain" } })).toBe(415);
  for (const method of ["GET", "DELETE"]) expect(await send({ method })).toBe(405);
  expect(await send({}, server.url.replace("/mcp", "/"))).toBe(404);
  expect(asked).toEqual([]);
});

test("over HTTP the mirror is told whose address a caller has, to count failed logins by", async () => {
  const { url, asked } = await openStandIn((_, response) => void response.end("{}"));
  await using server = await serveAgents(["--url", url]);
  await using agent = await agentAt(server.url, TOKEN);
  await agent.call("get_repository", asking);
  expect(asked.map(({ headers }) => headers)).toMatchObject([
    {
      ...{ authorization: `Bearer ${TOKEN}`, "x-forwarded-for": "127.0.0.1" },
      "user-agent": expect.stringMatching(/^tain-mcp\/\d/),
    },
  ]);
});

test("a limit is known by Retry-After, or by the time when there is more; without either it is a lack of rights", () => {
  const of = (status: number, headers: Record<string, string>) => {
    const answer = { status, headers: new Headers(headers) };
    const { kind, retryAfterSeconds } = refusal(answer, {}, { what: "it", isWrite: false });
    return [kind, retryAfterSeconds];
  };
  expect(of(403, {})).toEqual(["forbidden", null]);
  expect(of(403, { "retry-after": "30" })).toEqual(["rate_limited", 30]);
  expect(of(429, {})).toEqual(["rate_limited", 60]);
  const date = "Mon, 30 Nov 2026 12:00:00 GMT";
  const reset = String(Date.parse(date) / 1_000 + 90);
  expect(of(403, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset, date })).toEqual(["rate_limited", 90]);
  expect(of(403, { "x-ratelimit-remaining": "5", "x-ratelimit-reset": reset, date })).toEqual(["forbidden", null]);
  expect(documentIn("<html>")).toEqual({});
});

test("an answer of several parts is as old as the oldest, and warns of what any of them warns of", () => {
  const at = (headers: Record<string, string>) => freshnessIn("part", new Headers(headers));
  const missing = at({
    "x-tain-missing": "labels, pulls",
    warning: '110 tain "Old, or so", 111 tain "Not refreshed: why"',
  });
  const [older, newer] = ["2026-11-30T11:00:00.000Z", "2026-11-30T12:00:00.000Z"].map((time, hours) =>
    at({ "x-tain-confirmed-at": time, age: String(3_600 * (1 - hours)) }),
  );
  if (!older || !newer) throw new Error("There are two");
  expect(freshnessOf([newer, missing, older])).toEqual({
    answered_by: "mirror",
    confirmed_at: "2026-11-30T11:00:00.000Z",
    age_seconds: 3_600,
    missing: ["labels", "pulls"],
    warnings: ["Old, or so", "Not refreshed: why"],
  });
  const passed = { "x-tain-passed-through": "upstream" };
  const hit = at({ ...passed, "x-cache": "hit", age: "12" });
  const streamed = { ...at(passed), part: "another" };
  const forwarded = [
    { part: "another", cache: null },
    { part: "part", cache: "hit" },
  ];
  for (const parts of [
    [hit, streamed],
    [streamed, hit],
  ])
    expect(freshnessOf(parts)).toEqual({ answered_by: "upstream", confirmed_at: null, age_seconds: 12, forwarded });
});

test("all texts of an answer together are bounded, and no character is halved", () => {
  const texts = new Texts(60_000);
  const shown = Array.from({ length: 5 }, () => texts.bounded("x".repeat(60_000)) ?? "");
  expect(shown.map((text) => text.match(/^x*/)?.[0].length)).toEqual([60_000, 60_000, 60_000, 20_000, 0]);
  expect(texts.more).toEqual([
    "2 texts were cut: ask again with max_text (up to 65536) and fewer per page, since all texts together were too long",
  ]);
  expect(new Texts(1).bounded("🙂")).toBe("\ufffd … [cut: 1 of 2 characters]");
  expect([new Texts(1).bounded(null), new Texts(2).more]).toEqual([null, []]);
});
