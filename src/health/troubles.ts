import type { RoleLife } from "../operations/heartbeat.ts";
import { FLOORS } from "../upstream/quota/bucket.ts";
import type { Signs, Some } from "./signs.ts";

interface FoundTrouble {
  /** What is wrong. */
  says: string;
  /** Null: not known from where it was found. */
  since: Date | null;
  /** What to do. */
  todo: string;
}

/** `find`: null, where nothing is wrong, or nothing is known. */
interface TroubleRule {
  level: "problem" | "warning";
  find: (signs: Signs) => FoundTrouble | null;
}

/** The rules, the worst first. Each finds one trouble, however many things have it. */
const RULES = {
  "postgres-away": problem((signs) =>
    lacking(signs, "postgres-away", "Postgres cannot be used:", "See that DATABASE_URL is right and the server runs"),
  ),
  schema: problem((signs) =>
    lacking(signs, "schema", "The database's schema does not fit:", "Run `tain doctor`: it says what to do"),
  ),
  "postgres-full": problem((signs) =>
    lacking(signs, "postgres-full", "Postgres answers, but", "Free space on its disk, or give it more"),
  ),
  "postgres-read-only": problem((signs) =>
    lacking(
      signs,
      "postgres-read-only",
      "Postgres answers, but",
      "Point DATABASE_URL to the primary, or set default_transaction_read_only to off",
    ),
  ),
  "redis-away": problem((signs) =>
    lacking(signs, "redis-away", "Redis cannot be used:", "See that REDIS_URL is right and the server runs"),
  ),
  "redis-full": problem((signs) =>
    lacking(signs, "redis-full", "Redis answers, but", "Give it more memory or disk: nothing is copied or applied"),
  ),
  "redis-policy": problem((signs) =>
    lacking(signs, "redis-policy", "Redis may lose jobs:", "Set maxmemory-policy to noeviction"),
  ),
  worker: problem(({ processes }) =>
    absent(processes, "worker", "nothing is copied or applied, and deliveries wait in Postgres"),
  ),
  scheduler: problem(({ processes }) => absent(processes, "scheduler", "nothing starts catch-ups, sweeps and audits")),
  web: problem(({ processes }) => absent(processes, "web", "the API answers nobody, and webhooks are lost")),
  silent: warning(({ processes }) => silent(processes)),
  "token-rejected": problem(({ quota }) => {
    const rejected = unique(quota?.filter(({ problem }) => problem !== null) ?? [], ({ credential }) => credential);
    const [first] = rejected;
    if (!first) return null;
    const since = earliest(rejected.map(({ rejectedSince }) => rejectedSince));
    const more = rejected.length > 1 ? ` (${rejected.length} credentials)` : "";
    const says = `The ${first.name} cannot be used${more}: ${first.problem}`;
    return { says, since, todo: "Jobs that need it wait; `tain doctor` examines each" };
  }),
  "upstream-away": problem(({ upstream }) => {
    if (!upstream?.outage) return null;
    const { since, reason } = upstream.outage;
    return {
      says: `Upstream does not answer: ${reason}`,
      since,
      todo: "See that UPSTREAM_URL is right and reachable; reads go on, and the rest follows by itself",
    };
  }),
  "token-limited": warning(({ quota, mirror }) => {
    const blocked = unique(quota?.filter(({ blockedUntil }) => blockedUntil) ?? [], ({ credential }) => credential);
    const [first] = blocked;
    if (!first?.blockedUntil) return null;
    const waits = mirror?.isCopying ? "first copies wait" : "jobs wait";
    const until = momentText(first.blockedUntil);
    return { says: `Upstream asks the ${first.name} for silence until ${until}: ${waits}`, since: null, todo: WAIT };
  }),
  "token-quota": warning(({ quota }) => {
    const spent = quota?.find(
      ({ bucket, limit, remaining }) =>
        bucket !== "search" && limit !== null && remaining !== null && remaining <= limit * FLOORS["catch-up"],
    );
    if (!spent?.resetAt) return null;
    const says = `The ${spent.bucket} quota of the ${spent.name} is spent until ${momentText(spent.resetAt)}: jobs wait`;
    return { says, since: null, todo: "`tain quota` says what spent it; add a token, or lengthen CATCH_UP_INTERVAL" };
  }),
  "webhook-refused": warning(({ webhooks }) => {
    if (!webhooks?.refused) return null;
    const { since, reason } = webhooks.refused;
    return { says: `Webhooks are refused: ${reason}`, since, todo: "`tain hooks check` says which hook it is" };
  }),
  hook: warning(({ mirror }) =>
    some(mirror?.hooks, {
      says: (names) => `The webhook of ${names} is missing, or does not tell of all changes`,
      todo: "`tain hooks check` says why; `tain hooks register` repairs most of it",
    }),
  ),
  "delivery-waits": warning(({ mirror }) =>
    some(mirror?.waitingDeliveries, {
      says: (_, count) => `${counted(count, "delivery waits", "deliveries wait")} to be applied`,
      todo: "See that workers and a scheduler run and keep up; `tain deliveries list --status pending` lists them",
    }),
  ),
  "delivery-failed": warning(({ mirror }) =>
    some(mirror?.failedDeliveries, {
      says: (_, count) => `${counted(count, "delivery has failed", "deliveries have failed")}`,
      todo: "`tain deliveries list --status failed` says why; `tain deliveries replay --failed` tries again",
    }),
  ),
  "job-failed": warning(({ jobs }) => {
    if (!jobs || jobs.count === 0) return null;
    const says = `${counted(jobs.count, "job has failed", "jobs have failed")} for good: ${jobs.reason}`;
    return {
      says,
      since: jobs.since,
      todo: "`tain jobs list` says why; they are tried again, at once by `tain jobs retry --all`",
    };
  }),
  "repository-paused": warning(({ mirror }) =>
    some(mirror?.paused, {
      says: (names, count) => `${names} ${count === 1 ? "is" : "are"} paused`,
      todo: "`tain status` says why: mend the token's rights, or `tain remove` it",
    }),
  ),
  "repository-late": warning(({ mirror }) =>
    some(mirror?.late, {
      says: (names) => `Upstream has not confirmed ${names} for three intervals`,
      todo: "`tain quota` shows what is left, `tain status` what fails",
    }),
  ),
  "repository-fails": warning(({ mirror }) =>
    some(mirror?.failing, {
      says: (names) => `Something fails of ${names}`,
      todo: "`tain status` says what; it is tried again within the hour",
    }),
  ),
  target: warning(({ mirror }) =>
    some(mirror?.targets, {
      says: (names, count) => `${count === 1 ? "Target" : "Targets"} ${names} ${count === 1 ? "is" : "are"} disabled`,
      todo: "`tain targets check` says why; `tain targets enable` sends what has waited",
    }),
  ),
  drift: warning(({ mirror }) =>
    some(mirror?.drift, {
      says: (names) => `The last audit of ${names} found differences`,
      todo: "`tain audit --list` shows them; report one that comes again",
    }),
  ),
} as const satisfies Record<string, TroubleRule>;

export type TroubleName = keyof typeof RULES;

/** One thing that is wrong. */
export interface Trouble extends FoundTrouble {
  /** What `tain doctor` and docs/operations.md call it. */
  name: TroubleName;
  level: TroubleRule["level"];
}

/** What is wrong, the worst first. Pure. */
export function troublesIn(signs: Signs): Trouble[] {
  return Object.entries(RULES).flatMap(([name, { level, find }]) => {
    const found = find(signs);
    // `Object.entries` forgets the names' type.
    return found ? [{ name: name as TroubleName, level, ...found }] : [];
  });
}

const WAIT = "Wait: everything goes on by itself";

function problem(find: TroubleRule["find"]): TroubleRule {
  return { level: "problem", find };
}

function warning(find: TroubleRule["find"]): TroubleRule {
  return { level: "warning", find };
}

function lacking(
  { stores }: Signs,
  check: Signs["stores"][number]["check"],
  says: string,
  todo: string,
): FoundTrouble | null {
  const found = stores.find((one) => one.check === check);
  if (!found) return null;
  return { says: `${says} ${found.reason}`, since: null, todo };
}

function absent(lives: readonly RoleLife[] | null, role: RoleLife["role"], effect: string): FoundTrouble | null {
  const life = lives?.find((one) => one.role === role);
  if (!life || life.living > 0) return null;
  // A mirror that was never served, as one for SQL alone, lacks no web process.
  if (role === "web" && life.lastBeatAt === null) return null;
  return {
    says: `No ${role} is running: ${effect}`,
    since: life.lastBeatAt,
    todo: `Start one: \`npm start\`, or the Procfile's ${role}`,
  };
}

function silent(lives: readonly RoleLife[] | null): FoundTrouble | null {
  const role = lives?.find((one) => one.living > 0 && one.silent.length > 0);
  const [first] = role?.silent ?? [];
  if (!role || !first) return null;
  const says = `The ${role.role} process ${first.name} is silent: it hangs, or was killed`;
  return { says, since: first.since, todo: "See its log, and start it again" };
}

function some(
  found: Some | undefined,
  { says, todo }: { says: (names: string, count: number) => string; todo: string },
): FoundTrouble | null {
  if (!found || found.count === 0) return null;
  const more = found.count - found.names.length;
  const names = more > 0 ? `${found.names.join(", ")} and ${more} more` : found.names.join(", ");
  return { says: says(names, found.count), since: found.since, todo };
}

function unique<T>(all: readonly T[], keyOf: (one: T) => string): T[] {
  return [...new Map(all.map((one) => [keyOf(one), one])).values()];
}

function earliest(moments: readonly (Date | null)[]): Date | null {
  const known = moments.filter((at) => at !== null).map((at) => at.getTime());
  return known.length > 0 ? new Date(Math.min(...known)) : null;
}

function counted(count: number, one: string, many: string): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
}

/** A moment that reads the same everywhere. Pure. */
export function momentText(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
