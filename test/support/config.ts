import { type Config, parseConfig } from "../../src/config.ts";

/** What the processes of a test get of its own environment: where programs are, and what has been compiled before. */
export const inherited: NodeJS.ProcessEnv = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
};

/** A configuration on a test's own stores. `env` adds to it or overrides it. */
export function testConfig(
  { database, redis, upstream }: { database: string; redis: { url: string; prefix: string }; upstream: string },
  env: NodeJS.ProcessEnv = {},
): Config {
  return parseConfig(testEnvironment({ database, redis, upstream }, env));
}

/** The same as environment variables, for processes. */
export function testEnvironment(
  { database, redis, upstream }: { database: string; redis: { url: string; prefix: string }; upstream: string },
  env: NodeJS.ProcessEnv = {},
): NodeJS.ProcessEnv {
  return {
    DATABASE_URL: database,
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    UPSTREAM_URL: upstream,
    UPSTREAM_TOKEN: "test-upstream-token",
    WEBHOOK_SECRET: "test-webhook-secret",
    HOST: "127.0.0.1",
    LOG_LEVEL: process.env.LOG_LEVEL ?? "silent",
    ...env,
  };
}
