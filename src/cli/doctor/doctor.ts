import type { Context } from "../../context.ts";
import { rootReasonOf } from "../../failure.ts";
import { type Health, loadHealth } from "../../health/health.ts";
import { momentText } from "../../health/troubles.ts";
import { queueCounts } from "../../queues/counts.ts";
import { QUEUE_NAMES } from "../../queues/queues.ts";
import type { Command, Given } from "../terminal/command.ts";
import { openUnchecked } from "../terminal/open-instance.ts";
import { counted, type Output, styled } from "../terminal/output.ts";
import { type Finding, okFinding, problem, warning } from "./finding.ts";
import { examineMirror } from "./mirror.ts";
import { examinePostgres } from "./postgres.ts";
import { examineRedis } from "./redis.ts";
import { examineSealing } from "./sealing.ts";
import { examineSettings } from "./settings.ts";
import { examineUpstream } from "./upstream.ts";
import { CHECKED_HOOKS, examineHooks } from "./webhooks.ts";

/** The time limit for an answer of the web process, perhaps through a proxy. */
const WEB_MS = 5_000;

export const doctor: Command = {
  name: "doctor",
  about: `
Examines Postgres, Redis, upstream with each of our tokens (by fingerprint), which repositories a
token does not see, a GitHub App with its permissions and installations, the webhooks of the first
${CHECKED_HOOKS} repositories, replicas, targets and their keys, PUBLIC_URL, the clocks, the settings, and what waits for a person. Works while
parts are away, and says so.
Each finding is ok, a warning or a problem; the exit code is 1 when there is a problem. Costs some
requests of upstream's quota and changes nothing.`,
  run: runDoctor,
};

async function runDoctor({ env, resources, within }: Given, output: Output): Promise<number> {
  const opened = await openUnchecked(env, resources, within);
  const { ctx } = opened;
  const findings: Finding[] = [];
  const add = (found: readonly Finding[]) => {
    findings.push(...found);
    for (const finding of found) output.line(lineOf(finding));
  };
  const [postgres, redis] = await Promise.all([examinePostgres(ctx), examineRedis(ctx)]);
  add(postgres);
  add(redis);
  const hasMirror = postgres.every(({ part, level }) => part !== "postgres" || level !== "problem");
  add(await examineUpstream(ctx, hasMirror));
  if (hasMirror) {
    add(await examineMirror(ctx));
    add(await examineSealing(ctx));
    add(await examineHooks(opened));
  }
  add(await examineSettings({ config: ctx.config, db: hasMirror ? ctx.db : null }));
  if (redis.every(({ level }) => level !== "problem")) {
    const health = await loadHealth(ctx);
    add(await examineQueues(ctx));
    add(seenOnlyBy(health));
    add(await examineProcesses(ctx, health));
  }

  const count = (level: Finding["level"]) => findings.filter((finding) => finding.level === level).length;
  output.document({ problems: count("problem"), warnings: count("warning"), findings });
  output.line(`\n${counted(count("problem"), "problem")}, ${counted(count("warning"), "warning")}`);
  return count("problem") > 0 ? 1 : 0;
}

const LEVEL_COLOURS = { ok: "green", warning: "yellow", problem: "red" } as const;

export function lineOf({ level, part, says, todo }: Finding): string {
  const line = `${styled(LEVEL_COLOURS[level], level.padEnd(8))} ${part.padEnd(12)} ${says}`;
  return todo === null ? line : `${line}\n${" ".repeat(22)}${todo}`;
}

/**
 * Reports failed jobs. In the inbox's queue they are a problem, since such a job holds the only copy of its delivery.
 * In other queues they are a warning: the scheduler queues their work anew.
 */
async function examineQueues(ctx: Context): Promise<Finding[]> {
  const failed = Object.entries(await queueCounts(ctx)).filter(([, counts]) => counts.failed > 0);
  return failed.map(([name, { failed: count }]) => {
    const says = `${counted(count, "job")} of the queue ${name} failed for good`;
    const todo = "`tain jobs list` says why; `tain jobs retry` tries again, `tain jobs clear` forgets";
    return name === QUEUE_NAMES.inbox ? problem("job-failed", says, todo) : warning("job-failed", says, todo);
  });
}

/** What the line of health tells and no other examination finds. */
function seenOnlyBy({ troubles }: Health): Finding[] {
  return troubles.flatMap(({ name, says, since, todo }) =>
    name === "webhook-refused" || name === "drift" ? [warning(name, withSince(says, since), todo)] : [],
  );
}

/** The processes, and the web process at the public address. */
async function examineProcesses({ config }: Context, { troubles, processes }: Health): Promise<Finding[]> {
  const findings = troubles.flatMap(({ name, says, since, todo }) =>
    name === "worker" || name === "scheduler" || name === "web" || name === "silent"
      ? [warning(name, withSince(says, since), todo)]
      : [],
  );
  const living = (processes ?? []).flatMap(({ role, living: count }) =>
    count > 0
      ? [okFinding("processes", `${counted(count, `${role} process is`, `${role} processes are`)} running`)]
      : [],
  );
  return [...findings, ...living, ...(config.publicUrl === null ? [] : [await webFinding(config.publicUrl)])];
}

function withSince(says: string, since: string | null): string {
  return since === null ? says : `${says}, since ${momentText(new Date(since))}`;
}

async function webFinding(publicUrl: string): Promise<Finding> {
  const todo = "See that a web process runs, and that the address leads to it, through the proxy and its certificate";
  try {
    const answer = await fetch(`${publicUrl}/-/live`, { signal: AbortSignal.timeout(WEB_MS), redirect: "manual" });
    await answer.arrayBuffer();
    if (answer.ok) return okFinding("processes", `${publicUrl} answers`);
    return warning("public-url", `${publicUrl}/-/live answers ${answer.status}: something else stands there`, todo);
  } catch (error) {
    return warning("public-url", `${publicUrl} cannot be reached from here: ${rootReasonOf(error)}`, todo);
  }
}
