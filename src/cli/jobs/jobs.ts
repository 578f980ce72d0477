import type { Context } from "../../context.ts";
import {
  clearFailedJob,
  type FailedJob,
  type JobOutcome,
  listFailedJobs,
  retryFailedJob,
} from "../../queues/failed.ts";
import { QUEUE_NAMES } from "../../queues/queues.ts";
import { type Action, CommandError, type CommandGroup, type Given, UsageError } from "../terminal/command.ts";
import { LIMIT, readLimit } from "../terminal/listing.ts";
import { openInstance } from "../terminal/open-instance.ts";
import { counted, type Output, plain, spanOf, tableLines } from "../terminal/output.ts";

/** More than a queue keeps of them. */
const ALL = 10_000;

const list: Action = {
  name: "jobs list",
  summary: "the jobs that failed for good, and why",
  values: { limit: LIMIT },
  about: "Lists the jobs that failed for good, the newest first: what each was to do, why it failed, and when.",
  run: runList,
};

const retry: Action = {
  name: "jobs retry",
  summary: "try failed jobs once more",
  takes: "ID…",
  flags: { all: "all that have failed, in place of ids" },
  about: `
Puts failed jobs back into their queues, where each is tried once. One that fails again is listed
again. Commands of the operator's page are not tried again.`,
  run: (given, output) =>
    runEach(given, output, { verb: "retry", did: "put back into its queue", one: retryFailedJob }),
};

const clear: Action = {
  name: "jobs clear",
  summary: "forget failed jobs",
  takes: "ID…",
  flags: { all: "all that have failed, in place of ids, but those of the queue inbox" },
  about: `
Forgets failed jobs. Their work is found again by the scheduler, a sweep or an audit. Only a job of
the queue ${QUEUE_NAMES.inbox} holds what stands nowhere else, a delivery: it is forgotten by its id alone.`,
  run: (given, output) => runEach(given, output, { verb: "clear", did: "forgotten", one: clearFailedJob }),
};

export const jobs: CommandGroup = {
  name: "jobs",
  about: `
Works on jobs that failed for good. Most go by themselves within a minute once their work is done,
and those of the queue ${QUEUE_NAMES.inbox} are tried again every hour at least.`,
  actions: { list, retry, clear },
};

async function runList({ values, env, resources, within }: Given, output: Output): Promise<number> {
  const limit = readLimit(values);
  const { ctx } = await openInstance(env, resources, within);
  const failed = await listFailedJobs(ctx, limit);
  output.document({ jobs: failed });
  output.line(failed.length === 0 ? "No job has failed" : jobsTable(failed, ctx));
  return 0;
}

interface Doing {
  verb: "retry" | "clear";
  did: string;
  one: (ctx: Context, id: string) => Promise<JobOutcome>;
}

async function runEach(
  { words, flags, env, resources, within }: Given,
  output: Output,
  { verb, did, one }: Doing,
): Promise<number> {
  const isAll = flags.has("all");
  if (isAll === words.length > 0)
    throw new UsageError(`tain jobs ${verb} needs ids (\`tain jobs list\` has them), or --all in their place`);
  const { ctx } = await openInstance(env, resources, within);
  const ids = isAll ? await allIds(ctx, verb) : [...new Set(words)];
  const outcomes: { id: string; outcome: JobOutcome }[] = [];
  for (const id of ids) outcomes.push({ id, outcome: await one(ctx, id) });
  const absent = outcomes.filter(({ outcome }) => outcome === "absent").map(({ id }) => id);
  // Of all, some may have gone by themselves meanwhile.
  if (!isAll && absent.length > 0)
    throw new CommandError(`No failed job is named ${absent.join(", ")}: \`tain jobs list\` shows all`);
  const done = outcomes.filter(({ outcome }) => outcome === "done");
  output.document({ jobs: outcomes });
  output.line(`${counted(done.length, "job was", "jobs were")} ${did}`);
  return outcomes.some(({ outcome }) => outcome === "refused") ? 1 : 0;
}

async function allIds(ctx: Context, verb: Doing["verb"]): Promise<string[]> {
  const failed = await listFailedJobs(ctx, ALL);
  const left: readonly string[] = verb === "clear" ? [QUEUE_NAMES.inbox] : [QUEUE_NAMES.commands];
  return failed.filter(({ queue }) => !left.includes(queue)).map(({ id }) => id);
}

function jobsTable(failed: readonly FailedJob[], { clock }: Pick<Context, "clock">): string {
  const now = clock.now().getTime();
  const rows = failed.map(({ id, name, about, reason, failedAt, attempts }) => [
    id,
    name,
    Object.entries(about)
      .map(([field, value]) => `${field} ${value}`)
      .join(" "),
    failedAt === null ? "?" : `${spanOf(now - failedAt.getTime())} ago`,
    String(attempts),
    plain(reason),
  ]);
  return tableLines(["ID", "JOB", "OF", "FAILED", "ATTEMPTS", "REASON"], rows);
}
