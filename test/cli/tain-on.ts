import { inherited } from "../support/config.ts";
import type { TestWorld } from "../support/world.ts";
import { type Ended, Run } from "./tain.ts";

/** Runs `tain` on the stores and the upstream of a world, as a process of its own. `env` adds to that or overrides it. */
export async function tainOn(
  { ctx: { config }, url }: TestWorld,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  // biome-ignore lint/suspicious/noExplicitAny: documents are JSON, and tests look into them as programs do.
): Promise<Ended & { json: any }> {
  const run = new Run(args, {
    ...inherited,
    TAIN_HOME: "/nonexistent/tain",
    DATABASE_URL: config.databaseUrl,
    REDIS_URL: config.redisUrl,
    REDIS_PREFIX: config.redisPrefix,
    UPSTREAM_URL: config.upstreamUrl,
    UPSTREAM_TOKEN: config.upstreamTokens.join(","),
    WEBHOOK_SECRET: config.webhookSecrets.join(","),
    PUBLIC_URL: url,
    ...env,
  });
  const ended = await run.exited;
  // Before the last line a machine that is slow may have been told of progress.
  const last = args.includes("--json") ? ended.stdout.trimEnd().split("\n").at(-1) : "";
  return { ...ended, json: last ? JSON.parse(last) : null };
}
