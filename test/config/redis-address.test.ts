import { expect, test } from "vitest";
import { parseRedisAddress } from "../../src/config/redis-address.ts";

test.each([
  ["redis://cache:6380/2", { of: "server", endpoint: { host: "cache", port: 6_380 }, isEncrypted: false }],
  ["rediss://u:p@[2001:db8::1]", { of: "server", endpoint: { host: "2001:db8::1", port: 6_379 }, isEncrypted: true }],
  [
    "redis-sentinel://u:p%40ss@a:26380,b/3?master_name=tain&sentinel_password=word",
    {
      ...{ of: "sentinel", isEncrypted: false, username: "u", password: "p@ss", master: "tain", database: 3 },
      endpoints: [
        { host: "a", port: 26_380 },
        { host: "b", port: 26_379 },
      ],
      sentinelPassword: "word",
    },
  ],
  [
    "rediss-cluster://:only@[::1]:7000,n2.example",
    {
      ...{ of: "cluster", isEncrypted: true, password: "only" },
      endpoints: [
        { host: "::1", port: 7_000 },
        { host: "n2.example", port: 6_379 },
      ],
    },
  ],
])("%s is understood", (text, expected) => {
  expect(parseRedisAddress(text)).toEqual(expected.of === "server" ? { ...expected, url: text } : expected);
});

test.each([
  ["http://cache", /^is none of redis:/],
  ["redis-sentinel://a,b", /add \?master_name=NAME/],
  ["redis-sentinel://a/zero?master_name=x", /not the number of a database/],
  ["redis-sentinel://a?master_name=x&name=y", /has the parameter name: it takes master_name, sentinel_username/],
  ["redis-cluster://a?master_name=x", /has the parameter master_name: it takes none/],
  ["redis-cluster://a,b/1", /number 0 alone/],
  ["redis-cluster://a,,b", /list of hosts/],
  ["redis-cluster://a:port", /list of hosts/],
  ["redis-cluster://u:%zz@a", /not percent-encoded/],
])("%s is refused in words", (text, words) => {
  expect(() => parseRedisAddress(text)).toThrow(words);
});

test("no refusal repeats a password", () => {
  expect(() => parseRedisAddress("redis-cluster://u:hidden-word@a,,b")).toThrow(/^(?!.*hidden-word)/);
  expect(() => parseRedisAddress("redis-other://u:hidden-word@a")).toThrow(/^(?!.*hidden-word)/);
});
