import type { LookupAddress } from "node:dns";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { addressFault, isPublic } from "../../src/events/address-guard.ts";
import { isAccepted, TargetClient, waitOf } from "../../src/events/post.ts";
import { NOWHERE, testConfig } from "../support/config.ts";
import { openTargetServer, type TargetServer } from "./target-server.ts";

const INWARD = [
  ...["127.0.0.1", "127.8.9.10", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"],
  ...["169.254.169.254", "100.64.0.1", "100.127.255.255", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1"],
  ...["203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"],
  ...["::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1"],
  ...[
    "64:ff9b:1::7f00:1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2001:0:7f00:1::",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "fc00::1",
  ],
  ...["fd00:ec2::254", "ff02::1", "100::1", "2001:db8::1", "2001:10::1", "3fff::1", "4000::1"],
];
const PUBLIC = ["8.8.8.8", "140.82.112.3", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::1"];

/** How an address is written where nobody looks for one. */
const DISGUISED = [
  ...[
    "http://2130706433/",
    "http://0x7f000001/",
    "http://017700000001/",
    "http://127.1/",
    "http://0/",
    "http://0x7f.1/",
  ],
  ...[
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://127.0.0.1./",
    "http://LOCALHOST/",
    "http://localhost./",
  ],
  ...["http://a.localhost/", "http://redis/", "http://db.internal/", "http://printer.local/", "http://①②⑦.⓪.⓪.①/"],
  ...["http://８.８.８.８:6379/", "http://8.8.8.8:22/", "http://example.com:6379/", "http://[::1]:443/"],
];
const MALFORMED = [
  ...["", "example.com/hook", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "javascript:1"],
  ...["http://user:password@example.com/", "http://user@example.com/", "https://", "http://exa mple.com/"],
];
const NONE = { names: new Set<string>(), networks: [] };

test.each(INWARD)("%s is nobody's on the public Internet", (address) => expect(isPublic(address)).toBe(false));
test.each(PUBLIC)("%s may be anybody's", (address) => expect(isPublic(address)).toBe(true));
test.each(DISGUISED)("%s may not be a target", (url) => expect(addressFault(NONE, url)).toBe("unreachable"));
test.each(MALFORMED)("%s is no address of a target", (url) => expect(addressFault(NONE, url)).toBe("malformed"));

test("what the operator allows by name, address or network may be a target, on any port, and nothing beside it", () => {
  const { targetsAllowed } = config({ TARGETS_ALLOWED: "ci.internal, 10.1.0.0/16,fd00::/8,127.0.0.1" });
  for (const url of ["http://ci.internal:81/", "http://10.1.2.3:9/", "http://[fd00::1]/", "http://127.0.0.1:1234/"])
    expect(addressFault(targetsAllowed, url)).toBeNull();
  for (const url of ["http://cd.internal/", "http://10.2.0.1/", "http://[fc00::1]/", "http://127.0.0.2/"])
    expect(addressFault(targetsAllowed, url)).toBe("unreachable");
});

test.each(["10.0.0.0/33", "a b", "10.0.0", "ci.internal/8", "fd00::/129"])("TARGETS_ALLOWED refuses %s", (text) => {
  expect(() => config({ TARGETS_ALLOWED: text })).toThrow("TARGETS_ALLOWED holds what is neither");
});

function config(env: NodeJS.ProcessEnv) {
  return testConfig(
    { database: NOWHERE.database, redis: { url: NOWHERE.redis, prefix: "{test}" }, upstream: NOWHERE.upstream },
    env,
  );
}

describe("with a server that listens on the machine itself", () => {
  let server: TargetServer;
  beforeAll(async () => {
    server = await openTargetServer();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const request = { headers: { "x-github-event": "star" }, body: Buffer.from("{}") };
  const post = async (url: string, allowed: string, answers: LookupAddress[][] = []) => {
    const given = { config: config({ TARGETS_ALLOWED: allowed }), clock: { now: () => new Date() } };
    const client = new TargetClient(given, async () => answers.shift() ?? []);
    try {
      return await client.post({ url, insecureSsl: false }, request);
    } finally {
      await client.close();
    }
  };
  test("a name that leads inward, at first or later, reaches nothing, and the reason is said in words", async () => {
    const inward = [{ address: "127.0.0.1", family: 4 }];
    const mapped = [{ address: "::ffff:127.0.0.1", family: 6 }];
    for (const answers of [[inward], [mapped], [[...inward, ...mapped]], [[]]]) {
      const outcome = await post("http://rebound.example/", "", answers);
      expect(outcome).toMatchObject({ status: "failed to connect to host", statusCode: 502 });
      expect(isAccepted(outcome)).toBe(false);
      expect(outcome.reason).toMatch(/rebound.example is not reachable over the public Internet/);
    }
    expect(server.heard).toEqual([]);
  });

  test("an address that was registered while it was allowed is judged again when something is sent", async () => {
    expect(await post(server.url, "")).toMatchObject({
      statusCode: 502,
      reason: expect.stringContaining("TARGETS_ALLOWED"),
    });
    expect(server.heard).toEqual([]);
    expect(await post(server.url, "127.0.0.1")).toMatchObject({ status: "OK", statusCode: 200, reason: null });
    expect(server.heard.splice(0)).toHaveLength(1);
  });

  test("a mistake of ours does not pass for a target that is away", async () => {
    const client = new TargetClient({
      config: config({ TARGETS_ALLOWED: "127.0.0.1" }),
      clock: { now: () => new Date() },
    });
    const headers = {
      get "x-github-event"(): string {
        throw new TypeError("a mistake");
      },
    };
    await expect(client.post({ url: server.url, insecureSsl: false }, { ...request, headers })).rejects.toThrow(
      "a mistake",
    );
    await client.close();
  });

  test("a redirect is an answer like any other, and is not followed", async () => {
    server.answer = (_, reply) => reply.writeHead(307, { location: server.url }).end();
    const outcome = await post(server.url, "127.0.0.1");
    expect(outcome).toMatchObject({ status: "Invalid HTTP Response: 307", statusCode: 307 });
    expect(isAccepted(outcome)).toBe(false);
    expect(server.heard.splice(0)).toHaveLength(1);
    server.answer = null;
  });

  test("an answer without end is cut off, and its beginning is kept", async () => {
    server.answer = (_, reply) => {
      const more = () => {
        while (!reply.destroyed && reply.write("x".repeat(65_536)));
      };
      reply.on("drain", more);
      more();
      return "endless";
    };
    const outcome = await post(server.url, "127.0.0.1");
    expect(outcome).toMatchObject({ status: "OK", statusCode: 200, body: "x".repeat(4_096) });
    server.answer = null;
  });
});

test("Retry-After is understood as seconds and as a date, and nothing else", () => {
  const now = new Date("2026-01-01T00:00:00Z");
  expect(waitOf("120", now)).toBe(120_000);
  expect(waitOf("Thu, 01 Jan 2026 00:01:00 GMT", now)).toBe(60_000);
  expect(waitOf("Wed, 31 Dec 2025 00:00:00 GMT", now)).toBe(0);
  expect([waitOf(undefined, now), waitOf("soon", now), waitOf("-1x", now)]).toEqual([null, null, null]);
});
