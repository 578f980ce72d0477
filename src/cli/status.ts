import { type Local, openLocal } from "../context.ts";
import { forecast } from "../health/forecast.ts";
import { type Health, loadHealth } from "../health/health.ts";
import { loadStatus, type RepositoryStatus, type Status } from "../health/status.ts";
import { type QuotaReport, quotaReport } from "../upstream/quota/report.ts";
import { VERSION } from "../version.ts";
import { quotaText } from "./quota.ts";
import { type BackfillPace, loadPaces } from "./repositories/backfill-pace.ts";
import type { Command, Given } from "./terminal/command.ts";
import { openUncheckedBy, requireSchema } from "./terminal/open-stores.ts";
import { grouped, type Output, plain, spanOf, styled, tableLines } from "./terminal/output.ts";

export const status: Command = {
  name: "status",
  about: `
Says first whether all is well, or what is wrong, since when and what to do. Then it shows each
repository with its state, how far its first copy is and how long it will take,
when upstream last confirmed what is held, and what is wrong; the queues; and what upstream
still lets each of our tokens do. Read from the stores, so it works with nothing else running.`,
  run: runStatus,
};

async function runStatus({ env, resources }: Given, output: Output): Promise<number> {
  const { ctx } = await openUncheckedBy(openLocal, env, resources);
  const health = await loadHealth(ctx);
  const told = await loadAll(ctx).catch((error: unknown) => {
    // What is wrong is said even if nothing else can be.
    output.document({ version: VERSION, upstream: ctx.config.upstreamUrl, health });
    output.line(healthText(health));
    throw error;
  });
  const { report, paces } = told;
  output.document({
    ...report,
    health,
    repositories: report.repositories.map((repository) => ({ ...repository, pace: paceOf(repository, paces) })),
  });
  output.line(statusText({ ...report, health }, paces, ctx));
  return 0;
}

async function loadAll(ctx: Local): Promise<{ report: Status<QuotaReport>; paces: ReadonlyMap<string, BackfillPace> }> {
  await requireSchema(ctx);
  const [report, paces] = await Promise.all([
    loadStatus(
      ctx,
      () => quotaReport(ctx),
      forecast,
      async () =>
        ctx.config.databaseReplicaUrls.length > 0
          ? await (await import("../api/call/replicas.ts")).askReplicas(ctx)
          : [],
    ),
    loadPaces(ctx),
  ]);
  return { report, paces };
}

const HEALTH_COLOURS = { well: "green", warning: "yellow", problem: "red", unknown: "yellow" } as const;

function healthText({ state, line }: Health): string {
  return styled(HEALTH_COLOURS[state], plain(line));
}

function paceOf(
  { owner, name, state }: RepositoryStatus,
  paces: ReadonlyMap<string, BackfillPace>,
): BackfillPace | null {
  return state === "backfilling" ? (paces.get(`${owner}/${name}`) ?? null) : null;
}

/** Pure but for colours. */
function statusText(
  report: Status<QuotaReport> & { health: Health },
  paces: ReadonlyMap<string, BackfillPace>,
  { clock }: Pick<Local, "clock">,
): string {
  const now = clock.now().getTime();
  const parts = [
    `Tain ${report.version}, mirroring ${report.upstream}`,
    healthText(report.health),
    "",
    repositoriesText(report.repositories, paces),
    ...report.problems.map((problem) => styled("yellow", problem)),
    ...forecastText(report.forecast, now),
    "",
    queuesText(report.queues),
  ];
  if (report.replicas.length > 0) parts.push("", replicasText(report.replicas));
  const quota = quotaText(report.quota, now);
  if (quota !== "") parts.push("", quota);
  return parts.join("\n");
}

const STATE_COLOURS = { live: "green", backfilling: "cyan", paused: "yellow", gone: "dim" } as const;

function repositoriesText(repositories: readonly RepositoryStatus[], paces: ReadonlyMap<string, BackfillPace>): string {
  if (repositories.length === 0)
    return "Nothing is mirrored yet: name something in REPOSITORIES, or with `tain add owner/name`.";
  const rows = repositories.map((repository) => {
    const { owner, name, state, progress, lagSeconds, problem } = repository;
    const remainingMs = paceOf(repository, paces)?.remainingMs;
    const percent =
      state !== "backfilling" || progress === null
        ? ""
        : progress.percent === null
          ? `${grouped(progress.pages)} pages`
          : `${progress.percent} %`;
    return [
      `${owner}/${name}`,
      // A selection that has led to no repository yet is not being copied.
      progress === null && problem !== null && state === "backfilling"
        ? styled("yellow", "waiting")
        : styled(STATE_COLOURS[state], state),
      [percent, state === "backfilling" ? progress?.phase : null].filter(Boolean).join(" ") || "-",
      remainingMs == null ? "-" : `about ${spanOf(remainingMs)}`,
      progress === null ? "-" : grouped(progress.resources),
      lagSeconds === null ? "never" : `${spanOf(lagSeconds * 1_000)} ago`,
      problem === null ? "" : styled("yellow", problem),
    ];
  });
  return tableLines(["REPOSITORY", "STATE", "PROGRESS", "TO GO", "COPIED", "CONFIRMED", "PROBLEM"], rows);
}

function forecastText(forecast: Status["forecast"], now: number): string[] {
  if (!forecast) return [];
  const waits = forecast.waitsForQuota ? ", the waits for upstream's quota included" : "";
  return ["", `All first copies will be done in about ${spanOf(Date.parse(forecast.finishesAt) - now)}${waits}.`];
}

function queuesText(queues: Status["queues"]): string {
  if (queues === null) return "Queues: Redis cannot be reached, so nothing is known of them.";
  const rows = Object.entries(queues).map(([name, { waiting, active, delayed, failed }]) => [
    name,
    ...[waiting, active, delayed].map(grouped),
    failed > 0 ? styled("red", grouped(failed)) : "0",
  ]);
  return tableLines(["QUEUE", "WAITING", "ACTIVE", "DELAYED", "FAILED"], rows);
}

function replicasText(replicas: Status["replicas"]): string {
  const rows = replicas.map(({ name, leftOut, bytesBehind }) => [
    name,
    leftOut === null ? styled("green", "read") : styled("yellow", "left out"),
    bytesBehind === null ? "?" : grouped(bytesBehind),
    leftOut ?? "",
  ]);
  return tableLines(["REPLICA", "STATE", "BYTES BEHIND", "WHY"], rows);
}
