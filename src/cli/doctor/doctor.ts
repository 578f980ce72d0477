import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import {
  CredentialRejectedError,
  QuotaSpentError,
  UpstreamRefusedError,
  UpstreamUnavailableError,
} from "../../upstream/client/errors.ts";
import { reportToken, type TokenReport } from "../../upstream/credentials/token-report.ts";
import { type Command, type Given, listOf } from "../command.ts";
import { checkAppHook, checkHook } from "../hooks/hooks.ts";
import { reachableAddress } from "../hooks/repository-hooks.ts";
import { APP_TARGET, hookTargets } from "../hooks/targets.ts";
import { type OpenedInstance, openUnchecked } from "../open-instance.ts";
import { counted, grouped, type Output, spanOf, styled } from "../output.ts";
import { examineAppCredentials } from "./app.ts";
import { clockFinding, examinePostgres, examineRedis, type Finding, ok, problem, warning } from "./findings.ts";

/** Of more repositories than this it is not asked whether each token sees them: ten points a token. */
const ASKED_REPOSITORIES = 1_000;
/** Two requests each; `tain hooks check` asks for all. */
const CHECKED_HOOKS = 20;
/** Names in one sentence. */
const NAMED = 5;

export const doctor: Command = {
  name: "doctor",
  summary: "examine everything that Tain needs, and say what to do",
  about: `
Examines Postgres, Redis, upstream with each of our tokens (by fingerprint), which repositories a
token does not see, a GitHub App with its permissions and installations, the webhooks of the first ${CHECKED_HOOKS} repositories, the clocks, and what waits for a
person. Works while parts are away, and says so. Each finding is ok, a warning or a problem; the exit
code is 1 when there is a problem. Costs some requests of upstream's quota and changes nothing.`,
  run: runDoctor,
};

async function runDoctor({ env }: Given, output: Output): Promise<number> {
  await using resources = new AsyncDisposableStack();
  const opened = await openUnchecked(env, resources);
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
    add(await examineHooks(opened));
  }
  if (redis.every(({ level }) => level !== "problem")) add(await examineProcesses(ctx));

  const count = (level: Finding["level"]) => findings.filter((finding) => finding.level === level).length;
  output.document({ problems: count("problem"), warnings: count("warning"), findings });
  output.line(`\n${counted(count("problem"), "problem")}, ${counted(count("warning"), "warning")}`);
  return count("problem") > 0 ? 1 : 0;
}

const colours = { ok: "green", warning: "yellow", problem: "red" } as const;

function lineOf({ level, part, says, todo }: Finding): string {
  const line = `${styled(colours[level], level.padEnd(8))} ${part.padEnd(12)} ${says}`;
  return todo === null ? line : `${line}\n${" ".repeat(22)}${todo}`;
}

async function examineUpstream(ctx: Context, hasMirror: boolean): Promise<Finding[]> {
  const mirrored = hasMirror ? await repositoriesToSee(ctx) : [];
  const asked = mirrored.slice(0, ASKED_REPOSITORIES);
  const reports: TokenReport[] = [];
  for (const token of ctx.config.upstreamTokens) {
    try {
      reports.push(await reportToken(ctx, token, asked));
    } catch (error) {
      if (!(error instanceof UpstreamUnavailableError || error instanceof UpstreamRefusedError)) throw error;
      const todo = "See that UPSTREAM_URL is right and reachable from here";
      return [problem("upstream", `${ctx.config.upstreamUrl} does not answer as it should: ${error.message}`, todo)];
    }
  }
  const now = ctx.clock.now().getTime();
  const findings: Finding[] = reports.length > 0 ? [ok("upstream", `${ctx.config.upstreamUrl} answers`)] : [];
  if (ctx.config.appId !== null) findings.push(...(await examineAppCredentials(ctx, hasMirror)));
  findings.push(...reports.flatMap((report) => tokenFindings(report, now)));
  const aheadMs = reports.find((report) => report.aheadMs !== null)?.aheadMs;
  if (aheadMs != null) findings.push(clockFinding("upstream", aheadMs, 1_000));
  if (asked.length > 0 && reports.some(({ unseen }) => unseen !== null && unseen.length === 0))
    findings.push(
      mirrored.length > asked.length
        ? warning(
            "repositories",
            `Only the first ${asked.length} of ${mirrored.length} repositories were asked for`,
            "`tain status` names those that are paused",
          )
        : ok(
            "repositories",
            `${counted(asked.length, "mirrored repository is", "mirrored repositories are")} seen by ${reports.length === 1 ? "the token" : "a token"}`,
          ),
    );
  return findings;
}

async function repositoriesToSee({ db }: Context): Promise<{ nodeId: string; fullName: string }[]> {
  const rows = await db.query<{ node_id: string; full_name: string }>(sql`
    select r.node_id, r.full_name from repositories r join repository_syncs s on s.repository_id = r.id
      where s.state <> 'gone' and r.node_id is not null order by lower(r.full_name)`);
  return rows.map(({ node_id: nodeId, full_name: fullName }) => ({ nodeId, fullName }));
}

/** Pure. @param now epoch milliseconds */
export function tokenFindings(report: TokenReport, now: number): Finding[] {
  const { fingerprint, state, login, scopes, quota, unseen, unseenUnknown } = report;
  const name = `Token ${fingerprint}`;
  if (state === "rejected")
    return [
      problem(
        "upstream",
        `${name} is rejected: it is revoked, expired or wrong`,
        "Put a valid one in its place in UPSTREAM_TOKEN, and restart; one that was mended is tried again after five minutes",
      ),
    ];
  const whose = login === null ? "is nobody's own (an app's)" : `is ${login}'s`;
  const may = scopes === null ? "upstream does not tell its scopes" : `its scopes: ${listOf(scopes) || "none"}`;
  const left = quota.map(({ bucket, limit, remaining }) => `${bucket} ${grouped(remaining)} of ${grouped(limit)}`);
  const findings = [
    state === "spent"
      ? warning("upstream", `${name} is held back by a limit of upstream's`, "Wait; `tain status` says until when")
      : ok("upstream", `${name} ${whose}; ${may}; left: ${left.join(", ") || "not limited"}`),
  ];
  const low = quota.find(({ limit, remaining, bucket }) => bucket !== "search" && remaining < limit * 0.1);
  if (low)
    findings.push(
      warning(
        "upstream",
        `${name} has ${grouped(low.remaining)} of ${grouped(low.limit)} left in ${low.bucket}, until it is reset in ${spanOf(low.resetAt.getTime() - now)}: first copies wait`,
        "Wait, add tokens to UPSTREAM_TOKEN, or lengthen CATCH_UP_INTERVAL",
      ),
    );
  if (scopes !== null && !scopes.includes("repo"))
    findings.push(
      warning(
        "upstream",
        `${name} has not the scope repo: private repositories cannot be mirrored, and perhaps nothing written`,
        "Give it the scope repo, unless that is meant so",
      ),
    );
  if (unseen !== null && unseen.length > 0)
    findings.push(
      problem(
        "repositories",
        `${name} does not see ${named(unseen)}: requests that go by it are answered 404, and the repository is paused`,
        "Give it access, take it out of UPSTREAM_TOKEN, or `tain remove` what it cannot see",
      ),
    );
  if (unseen === null && unseenUnknown !== null)
    findings.push(
      warning("repositories", `It is not known which repositories ${name} sees: ${unseenUnknown}`, "Ask again later"),
    );
  return findings;
}

/** What the mirror itself knows to be waiting for a person. */
async function examineMirror({ db }: Context): Promise<Finding[]> {
  const states = await db.query<{ full_name: string; problem: string | null }>(sql`
    select r.full_name, s.problem from repository_syncs s join repositories r on r.id = s.repository_id
      where s.state = 'paused' order by lower(r.full_name)`);
  const wishes = await db.query<{ pattern: string; problem: string }>(sql`
    select pattern, problem from selections where problem is not null order by pattern`);
  const failures = await db.query<{ failed: number; overdue: number }>(sql`
    select count(*) filter (where status = 'failed')::integer as failed,
      count(*) filter (where status = 'pending' and received_at < now() - interval '5 minutes')::integer as overdue
      from deliveries`);
  const { failed = 0, overdue = 0 } = failures[0] ?? {};
  const findings: Finding[] = [];
  if (states.length > 0)
    findings.push(
      problem(
        "repositories",
        `Paused: ${named(states.map(({ full_name: name, problem: why }) => (why ? `${name} (${why})` : name)))}`,
        "Mend the token's rights, or `tain remove` it",
      ),
    );
  for (const { pattern, problem: why } of wishes.slice(0, NAMED))
    findings.push(
      warning(
        "repositories",
        `${pattern} is wished and cannot be mirrored: ${why}`,
        `Mend it, or \`tain remove ${pattern}\``,
      ),
    );
  findings.push(
    failed > 0
      ? warning(
          "deliveries",
          `${counted(failed, "delivery has", "deliveries have")} failed`,
          "`tain deliveries list --status failed` says why; `tain deliveries replay --failed` tries again",
        )
      : ok("deliveries", "No delivery has failed"),
  );
  if (overdue > 0)
    findings.push(
      warning(
        "deliveries",
        `${counted(overdue, "delivery waits", "deliveries wait")} for more than five minutes`,
        "See that workers and a scheduler run",
      ),
    );
  return findings;
}

async function examineHooks(opened: OpenedInstance): Promise<Finding[]> {
  const { ctx } = opened;
  const address = await reachableAddress(opened);
  if (address === null)
    return [
      warning(
        "hooks",
        "Upstream knows no address of ours (or no WEBHOOK_SECRET is set here): changes are found by catch-up only, deletions not at all",
        "Set PUBLIC_URL and WEBHOOK_SECRET, then `tain hooks register`",
      ),
    ];
  const names = await hookTargets(ctx, []);
  const checked = names.slice(0, CHECKED_HOOKS);
  const byKind = new Map<string, { level: "warning" | "problem"; says: string; names: string[] }>();
  let well = 0;
  for (const name of checked) {
    let findings: Awaited<ReturnType<typeof checkHook>>["findings"];
    try {
      ({ findings } = name === APP_TARGET ? await checkAppHook(ctx, address) : await checkHook(ctx, name, address));
    } catch (error) {
      if (
        !(error instanceof UpstreamUnavailableError) &&
        !(error instanceof QuotaSpentError) &&
        !(error instanceof CredentialRejectedError)
      )
        throw error;
      return [warning("hooks", `The hooks cannot be checked: ${error.message}`, "Ask again later")];
    }
    if (findings.length === 0) well += 1;
    for (const { kind, level, says } of findings) {
      const group = byKind.get(kind) ?? { level, says, names: [] };
      group.names.push(name);
      byKind.set(kind, group);
    }
  }
  const found = [...byKind.values()].map(({ level, says, names: concerned }): Finding => {
    const text = `${named(concerned)}: ${says}`;
    const todo = "`tain hooks check` says what to do; `tain hooks register` mends most of it";
    return level === "problem" ? problem("hooks", text, todo) : warning("hooks", text, todo);
  });
  const of = names.length > checked.length ? `the first ${checked.length} of ${names.length}` : String(names.length);
  return [...found, ...(well > 0 ? [ok("hooks", `Well: ${well} of ${of}`)] : [])];
}

async function examineProcesses({ queues }: Context): Promise<Finding[]> {
  const workers = await queues.deliveries.getWorkers();
  return [
    workers.length > 0
      ? ok("processes", `${counted(workers.length, "worker")} ${workers.length === 1 ? "is" : "are"} running`)
      : warning(
          "processes",
          "No worker is running: nothing is copied or applied",
          "Start one: `npm start`, or the Procfile's worker",
        ),
  ];
}

/** The first few, and how many more. Pure. */
function named(names: readonly string[]): string {
  const more = names.length - NAMED;
  return more > 0 ? `${names.slice(0, NAMED).join(", ")} and ${more} more` : listOf(names);
}
