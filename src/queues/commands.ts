import { randomUUID } from "node:crypto";
import { openAny, sealNewest } from "../config/sealing.ts";
import { withPatience } from "../operations/redis.ts";
import type { Stores } from "../stores.ts";
import type { CommandJob } from "./jobs.ts";
import { askQueues, type QueueAccess } from "./queues.ts";

/**
 * Commands of `tain` that an operator asks for on the page. The web process may not do them itself, so a worker does. Commands
 * and their reports are sealed by a key made of ENCRYPTION_KEY: Redis keeps no secret in the open, and write access to Redis
 * alone is not enough to ask for a command.
 */
export interface AskedCommand {
  /** As it is typed, such as `deliveries replay`. */
  name: string;
  /** What follows the name. */
  args: string[];
  /** Epoch milliseconds, by our clock. */
  askedAt: number;
  /** Who asked, for the audit log. `session` names the sign-in, and opens none. Null: a process of before asked. */
  by?: { session: string; address: string } | null;
}

/** How a command comes along, or how it ended. */
export interface CommandReport {
  state: "running" | "done";
  /** What a person is told, as on a terminal. */
  lines: string[];
  /** The last of what a program is told; null: nothing. */
  document: unknown;
  /** Why it could not be done, in words. */
  error: string | null;
  /** The exit code; null while it runs. */
  code: number | null;
}

/** A command that waited longer is not what its operator expects any more. */
const STALE_MS = 10 * 60_000;
/** How long it is told what came of it. */
const TOLD_MS = 10 * 60_000;

type Sealing = Pick<Stores, "config">;

/** Asks for a command, and answers its id. @throws QueueUnavailableError */
export async function askCommand(
  ctx: QueueAccess & Sealing & Pick<Stores, "clock">,
  { name, args, by = null }: Pick<AskedCommand, "name" | "args" | "by">,
): Promise<string> {
  const id = randomUUID();
  const asked: AskedCommand = { name, args, by, askedAt: ctx.clock.now().getTime() };
  const job: CommandJob = { id, sealed: sealedValue(ctx, `asked ${id}`, asked) };
  await askQueues(ctx, () => ctx.queues.commands.add("command", job, { jobId: id }));
  return id;
}

/** The command of a job; null: none of our processes sealed it, or it waited too long. */
export function openCommand(ctx: Sealing & Pick<Stores, "clock">, job: CommandJob): AskedCommand | null {
  // Only `askCommand` has the key.
  const asked = unsealed(ctx, `asked ${job.id}`, job.sealed) as AskedCommand | null;
  return asked && ctx.clock.now().getTime() - asked.askedAt < STALE_MS ? asked : null;
}

export async function reportCommand(
  ctx: Sealing & Pick<Stores, "redis">,
  id: string,
  told: CommandReport,
): Promise<void> {
  const text = sealedValue(ctx, `told ${id}`, told);
  await withPatience(ctx.redis, () => ctx.redis.set(commandKey(ctx.config, id), text, "PX", TOLD_MS));
}

/** Null: it has not begun, or nobody asked for it lately. */
export async function readCommand(ctx: Sealing & Pick<Stores, "redis">, id: string): Promise<CommandReport | null> {
  const text = await withPatience(ctx.redis, () => ctx.redis.get(commandKey(ctx.config, id)));
  // Only `reportCommand` has the key.
  return text === null ? null : (unsealed(ctx, `told ${id}`, text) as CommandReport | null);
}

/** Why a command has not begun, in words; null: nobody knows it, or its worker has gone. @throws QueueUnavailableError */
export async function waitsFor(ctx: QueueAccess, id: string): Promise<string | null> {
  const job = await askQueues(ctx, () => ctx.queues.commands.getJob(id));
  if (!job || (await askQueues(ctx, () => job.isFailed()))) return null;
  const workers = await askQueues(ctx, () => ctx.queues.commands.getWorkers());
  return workers.length > 0 ? "It waits for its turn" : "No worker is running: it waits until one does";
}

const PURPOSE = "tain commands";

function sealedValue({ config }: Sealing, boundTo: string, value: unknown): string {
  return sealNewest(config, { purpose: PURPOSE, boundTo }, JSON.stringify(value)).toString("base64");
}

/** While a key is exchanged, processes may have another one first. */
function unsealed({ config }: Sealing, boundTo: string, text: string): unknown {
  const opened = openAny(config, { purpose: PURPOSE, boundTo }, Buffer.from(text, "base64"));
  return opened === null ? null : JSON.parse(opened.text);
}

function commandKey({ redisPrefix }: Pick<Stores["config"], "redisPrefix">, id: string): string {
  return `${redisPrefix}:command:${id}`;
}
