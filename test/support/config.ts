import { type Config, parseConfig } from "../../src/config.ts";

/** What a test's processes get of the test's own environment: where programs are, and the cache of compiled code. */
export const inherited: NodeJS.ProcessEnv = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
};

/** The mirror's token at upstream. */
export const UPSTREAM_TOKEN = "test-upstream-token";

/** The login of the token's owner. */
export const OWNER = "mirror-owner";

/** Addresses at which nobody listens. A connection is refused at once. */
export const NOWHERE = {
  database: "postgres://tain:tain@127.0.0.1:1/tain",
  redis: "redis://127.0.0.1:1",
  upstream: "http://127.0.0.1:1",
};

interface Places {
  database: string;
  redis: { url: string; prefix: string };
  upstream: string;
}

/** A configuration on a test's own stores. `env` adds to its settings or overrides them. */
export function testConfig(places: Places, env: NodeJS.ProcessEnv = {}): Config {
  return parseConfig(testEnvironment(places, env));
}

/** The same settings as environment variables, for processes. */
export function testEnvironment({ database, redis, upstream }: Places, env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  return {
    DATABASE_URL: database,
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    UPSTREAM_URL: upstream,
    UPSTREAM_TOKEN,
    WEBHOOK_SECRET: "test-webhook-secret",
    ENCRYPTION_KEY: "test-encryption-key",
    HOST: "127.0.0.1",
    PORT: "0",
    LOG_LEVEL: process.env.LOG_LEVEL ?? "silent",
    ...env,
  };
}
