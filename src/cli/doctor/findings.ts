import { schemaMismatch } from "../../../db/migrate.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";

/** What was looked at and how it is. */
export interface Finding {
  part: "postgres" | "redis" | "upstream" | "clock" | "repositories" | "deliveries" | "hooks" | "processes";
  level: "ok" | "warning" | "problem";
  says: string;
  /** What to do about it; null where all is well. */
  todo: string | null;
}

export function ok(part: Finding["part"], says: string): Finding {
  return { part, level: "ok", says, todo: null };
}

export function warning(part: Finding["part"], says: string, todo: string): Finding {
  return { part, level: "warning", says, todo };
}

export function problem(part: Finding["part"], says: string, todo: string): Finding {
  return { part, level: "problem", says, todo };
}

const ANSWER_TIMEOUT_MS = 5_000;

/** What Postgres says of itself. */
export interface PostgresFacts {
  /** As in `server_version_num`: 180001 is 18.1. */
  versionNumber: number;
  version: string;
  isStandby: boolean;
  fsync: string;
  synchronousCommit: string;
  maxConnections: number;
  connections: number;
}

/** Whether Postgres is there and fit, its schema, its clock. Never fails: what fails is a finding. */
export async function examinePostgres({ db, clock }: Pick<Context, "db" | "clock">): Promise<Finding[]> {
  const limits = { timeoutMs: ANSWER_TIMEOUT_MS };
  try {
    // The first statement opens the connection, which must not count as a clock's difference.
    await db.query(sql`select`, limits);
    const askedAt = clock.now().getTime();
    const [facts] = await db.query<PostgresFacts & { now: Date }>(
      sql`
        select current_setting('server_version_num')::integer as "versionNumber",
          current_setting('server_version') as version, pg_is_in_recovery() as "isStandby",
          current_setting('fsync') as fsync, current_setting('synchronous_commit') as "synchronousCommit",
          current_setting('max_connections')::integer as "maxConnections",
          (select count(*)::integer from pg_stat_activity where backend_type = 'client backend') as connections,
          clock_timestamp() as now`,
      limits,
    );
    if (!facts) throw new Error("Postgres answered without a row");
    const aheadMs = facts.now.getTime() - (askedAt + clock.now().getTime()) / 2;
    const mismatch = await schemaMismatch(db, limits);
    return [...postgresFindings(facts), schemaFinding(mismatch), clockFinding("Postgres", aheadMs)];
  } catch (error) {
    return [
      problem(
        "postgres",
        `Postgres cannot be used: ${reasonOf(error)}`,
        "See that DATABASE_URL is right and the server runs",
      ),
    ];
  }
}

/** Pure. */
export function postgresFindings(facts: PostgresFacts): Finding[] {
  const { version, versionNumber, isStandby, fsync, synchronousCommit, connections, maxConnections } = facts;
  const findings = [
    versionNumber >= 180_000
      ? ok("postgres", `Postgres ${version}`)
      : problem("postgres", `Postgres ${version} is too old`, "Tain needs Postgres 18 or newer"),
  ];
  if (isStandby)
    findings.push(
      problem(
        "postgres",
        "Postgres is a standby, and takes no writes",
        "Promote it, or point DATABASE_URL to the primary",
      ),
    );
  const unsafe = [fsync === "off" ? "fsync" : null, synchronousCommit === "off" ? "synchronous_commit" : null];
  for (const name of unsafe.filter((each) => each !== null))
    findings.push(
      warning(
        "postgres",
        `${name} is off: what was acknowledged to upstream may be lost when the machine fails`,
        `Set ${name} to on`,
      ),
    );
  if (connections > maxConnections * 0.9)
    findings.push(
      warning(
        "postgres",
        `${connections} of ${maxConnections} connections are in use`,
        "Raise max_connections, or lower DATABASE_CONNECTIONS; each process opens up to that many",
      ),
    );
  return findings;
}

function schemaFinding(mismatch: Awaited<ReturnType<typeof schemaMismatch>>): Finding {
  switch (mismatch) {
    case null:
      return ok("postgres", "The schema is this version's");
    case "missing":
      return problem("postgres", "Migrations are missing", "Run `node db/migrate.ts`");
    case "newer":
      return problem(
        "postgres",
        "A newer Tain has migrated this database",
        "Run that one, or restore a database of this version",
      );
    default:
      return mismatch satisfies never;
  }
}

/** Whether Redis is there and fit, and its clock. Never fails: what fails is a finding. */
export async function examineRedis({ redis, clock }: Pick<Context, "redis" | "clock">): Promise<Finding[]> {
  try {
    if (redis.status !== "ready") throw new Error("no connection comes about");
    const askedAt = clock.now().getTime();
    const [seconds, microseconds] = (await redis.time()).map(Number) as [number, number];
    const aheadMs = seconds * 1_000 + microseconds / 1_000 - (askedAt + clock.now().getTime()) / 2;
    const texts = [await redis.info("server"), await redis.info("memory"), await redis.info("persistence")];
    // Hosted servers may forbid CONFIG; then nothing is known of snapshots.
    const [, save = null] = (await redis.config("GET", "save").catch(() => [])) as string[];
    return [...redisFindings(texts.join("\n"), save), clockFinding("Redis", aheadMs)];
  } catch (error) {
    return [
      problem("redis", `Redis cannot be used: ${reasonOf(error)}`, "See that REDIS_URL is right and the server runs"),
    ];
  }
}

/** Pure. @param info what INFO says @param save the setting of snapshots; null where it is not told */
export function redisFindings(info: string, save: string | null): Finding[] {
  const facts = new Map([...info.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name = "", value = ""]) => [name, value]));
  const version = facts.get("redis_version") ?? "?";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const name = facts.has("valkey_version") ? `Valkey ${facts.get("valkey_version")}` : `Redis ${version}`;
  const findings = [
    major > 6 || (major === 6 && minor >= 2)
      ? ok("redis", name)
      : problem("redis", `${name} is too old`, "Tain needs Redis 6.2 or newer, or Valkey"),
  ];

  const policy = facts.get("maxmemory_policy");
  if (policy === undefined)
    findings.push(
      warning("redis", "It is not told what happens when memory is short", "See that maxmemory-policy is noeviction"),
    );
  else if (policy === "noeviction") findings.push(ok("redis", "maxmemory-policy is noeviction"));
  else
    findings.push(
      problem(
        "redis",
        `maxmemory-policy is ${policy}, which throws jobs away when memory is short`,
        "Set maxmemory-policy to noeviction",
      ),
    );

  const [used, most] = [Number(facts.get("used_memory")), Number(facts.get("maxmemory"))];
  if (most > 0 && used > most * 0.9)
    findings.push(
      warning(
        "redis",
        `${Math.round((used / most) * 100)} % of its memory is in use`,
        "Give it more; when it is full it refuses jobs",
      ),
    );

  if (facts.get("aof_enabled") === "1") {
    findings.push(
      facts.get("aof_last_write_status") === "err"
        ? problem("redis", "Redis cannot write its append-only file", "See its log and its disk")
        : ok("redis", "Redis keeps an append-only file"),
    );
  } else {
    const keeps = save ? "snapshots only" : save === null ? "no append-only file" : "nothing on disk";
    findings.push(
      warning(
        "redis",
        `Redis keeps ${keeps}: deliveries that wait in it while Postgres is away are lost when it restarts`,
        "Set appendonly to yes",
      ),
    );
  }
  return findings;
}

// The merge compares when things were seen, by our clocks: a few seconds of difference may take an old read for a new one.
const CLOCK_WARNING_MS = 2_000;
const CLOCK_PROBLEM_MS = 30_000;

/** Pure. @param aheadMs how far the other clock is ahead of ours @param precisionMs how exactly that is known */
export function clockFinding(whose: string, aheadMs: number, precisionMs = 100): Finding {
  const difference = Math.abs(aheadMs);
  const seconds = (difference / 1_000).toFixed(1);
  if (difference <= CLOCK_WARNING_MS + precisionMs) return ok("clock", `${whose} has the same time as this machine`);
  const says = `The clock of ${whose} is ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} this machine's`;
  const todo = "Synchronise the clocks (NTP): of two observations the newer wins, and clocks say which that is";
  return difference > CLOCK_PROBLEM_MS ? problem("clock", says, todo) : warning("clock", says, todo);
}

/** Several addresses that all refuse make an AggregateError, whose own message is empty. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.message || (error as NodeJS.ErrnoException).code || error.name;
}
