import { main } from "../../src/cli/main.ts";
import { inherited } from "../support/config.ts";
import type { TestWorld } from "../support/world.ts";
import { type Ended, Run } from "./tain.ts";

// biome-ignore lint/suspicious/noExplicitAny: documents are JSON, and tests look into them as programs do.
type Answered = Ended & { json: any };

/** Runs `tain` in this process: a process of its own spends half a second of processor time on loading. */
export async function tain(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> {
  const said = { stdout: "", stderr: "" };
  const listener = (stream: keyof typeof said) => ({
    write: (text: string) => {
      said[stream] += text;
    },
  });
  const streams = { stdout: listener("stdout"), stderr: listener("stderr") };
  const code = await main(args, env, streams);
  return { code, ...said };
}

/** Runs `tain` on the stores and the upstream of a world. `env` adds to the settings or overrides them. */
export async function tainOn(
  world: TestWorld,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<Answered> {
  return answered(args, await tain(args, environmentOf(world, env)));
}

/** Runs `tain` as a process of its own, which must end by itself. One such test for each command is enough. */
export async function tainProcessOn(
  world: TestWorld,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<Answered> {
  return answered(args, await new Run(args, environmentOf(world, env)).exited);
}

function environmentOf({ ctx: { config }, url }: TestWorld, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return {
    ...inherited,
    TAIN_HOME: "/nonexistent/tain",
    DATABASE_URL: config.databaseUrl,
    REDIS_URL: config.redisUrl,
    REDIS_PREFIX: config.redisPrefix,
    UPSTREAM_URL: config.upstreamUrl,
    UPSTREAM_TOKEN: config.upstreamTokens.join(","),
    WEBHOOK_SECRET: config.webhookSecrets.join(","),
    ...(config.encryptionKeys && { ENCRYPTION_KEY: config.encryptionKeys.join(",") }),
    PUBLIC_URL: url,
    ...env,
  };
}

function answered(args: readonly string[], ended: Ended): Answered {
  // On a slow machine, lines about progress may come before the last line.
  const last = args.includes("--json") ? ended.stdout.trimEnd().split("\n").at(-1) : "";
  return { ...ended, json: last ? JSON.parse(last) : null };
}
