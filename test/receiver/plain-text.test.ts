import { expect, test } from "vitest";
import { plainTextWarnings } from "../../src/health/plain-text.ts";

const near = {
  upstreamUrl: "https://ghe.example/api/v3",
  databaseUrl: "postgres://u:p@127.0.0.1/tain",
  databaseDirectUrl: null as string | null,
  databaseReplicaUrls: ["postgres://u:p@127.0.0.1:5433/tain"],
  redisUrl: "redis://localhost:6379",
};
const warned = (change: Partial<typeof near>) =>
  plainTextWarnings({ ...near, ...change }).map((warning) => warning.split(" ")[0]);

test.each([
  ["upstreamUrl", "http://ghe.example/api/v3", "UPSTREAM_URL"],
  ["upstreamUrl", "http://10.0.0.7/api/v3", "UPSTREAM_URL"],
  ["databaseUrl", "postgres://u:p@db.example:5432/tain", "DATABASE_URL"],
  ["databaseUrl", "postgres://u:p@198.51.100.7/tain?sslmode=prefer", "DATABASE_URL"],
  ["databaseUrl", "postgres://u:p@db.example/tain?sslmode=disable", "DATABASE_URL"],
  ["databaseDirectUrl", "postgres://u:p@db.example/tain", "DATABASE_DIRECT_URL"],
  ["redisUrl", "redis://:p@redis.example:6379", "REDIS_URL"],
  ["redisUrl", "redis-sentinel://:p@10.0.0.1,redis.example/0?master_name=tain", "REDIS_URL"],
  ["redisUrl", "redis://[2001:db8::1]:6379", "REDIS_URL"],
])("%s=%s is warned about", (key, value, name) => {
  expect(warned({ [key]: value })).toEqual([name]);
});

test.each([
  ["upstreamUrl", "http://127.0.0.1:3000"],
  ["upstreamUrl", "http://[::1]:3000"],
  ["databaseUrl", "postgres://u:p@db.example/tain?sslmode=verify-full"],
  ["databaseUrl", "postgres://u:p@10.1.2.3/tain"],
  ["databaseUrl", "postgres://u:p@postgres/tain"],
  ["databaseUrl", "postgres:///tain?host=/run/postgresql"],
  ["redisUrl", "rediss://:p@redis.example:6379"],
  ["redisUrl", "rediss-cluster://:p@redis.example:6379"],
  ["redisUrl", "redis://[fd00::1]:6379"],
  ["redisUrl", "redis://redis:6379"],
])("%s=%s is not", (key, value) => {
  expect(warned({ [key]: value })).toEqual([]);
});

test("a warning repeats neither address nor password", () => {
  const [warning = ""] = plainTextWarnings({ ...near, databaseUrl: "postgres://u:hidden@db.example/tain" });
  expect(warning).not.toMatch(/hidden|db\.example/);
});
