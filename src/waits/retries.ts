import type { Backoff, Limits } from "./backoff.ts";

/** A policy of trying again: each has a figure that ends it, or says in words what does. */
type RetryPolicy = Backoff & Limits & (Required<Pick<Limits, "attempts">> | Bounded | { until: string });
type Bounded = Required<Pick<Limits, "withinMs">> | Required<Pick<Limits, "patienceMs">>;

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Every wait is as long as the first, give or take chance. */
const each = <const Ms extends number>(ms: Ms) => ({ firstMs: ms, longestMs: ms });

/**
 * Everything that is tried again, and how long it is waited for: all figures side by side. The formula is in
 * `backoff.ts`. Loops wait through `repeated.ts`. What is stored and resumed by another process, and what is just left
 * alone until the next caller comes, takes its figures here and the formula there.
 *
 * Chance is in all waits but these: Redis and Postgres tell all processes of one moment, and the jobs that wait for it
 * come a little later by chance; marks become due together, so that one question covers many; and what is left alone in
 * one process is asked for again by the next request, which comes by chance.
 *
 * Whether an error is worth another attempt is said where it is caught; for jobs, in `workers/retry-policy.ts`. What
 * runs on a schedule is not here: `src/config/settings.ts` and `src/sync/schedules.ts` say how often. Operators find the
 * waits of minutes in docs/operations.md and docs/following.md, and a test compares them.
 */
export const RETRIES = {
  // Requests to upstream.

  /** A read that upstream broke off, or answered 502, 503 or 504. Mostly the next server of its own answers. */
  upstreamRead: { firstMs: 500, longestMs: 5 * SECOND, attempts: 3 },
  /** A request without a lease, while Redis cannot give it one. */
  withoutBudget: { ...each(2 * SECOND), until: "Redis is back" },
  /** A credential that upstream throttles without a time. GitHub docs: a minute at least, then exponentially longer. */
  throttled: { firstMs: MINUTE, longestMs: 15 * MINUTE, until: "upstream answers" },
  /** A rejected token, since upstream's fault may have been a passing one. */
  rejectedToken: { ...each(5 * MINUTE), until: "upstream takes it" },
  /** The renewal of an installation's token, as long as the old token serves. */
  tokenRenewal: { ...each(MINUTE), until: "the old token expires" },
  /** A look whether another process has made an installation's token. Upstream gives up after 10 s. */
  othersToken: { ...each(50), withinMs: 15 * SECOND },
  /** The list of the App's installations, while another process reads it. After that the scheduler's next minute does. */
  othersInstallations: { ...each(250), attempts: 80 },
  /** A webhook of `npm start` that upstream refused. An operator may mend the token's rights meanwhile. */
  refusedHook: { ...each(10 * MINUTE), until: "the process ends" },
  /** The question of `npm start` whose token it has. An instance needs an API token to give out. */
  viewer: { firstMs: 2 * SECOND, longestMs: MINUTE, until: "the process ends" },

  /** A target whose secret this process cannot decrypt, as beside processes with a newer ENCRYPTION_KEY. */
  unknownKey: { ...each(MINUTE), until: "a process has the key" },
  /** The search for a repository's webhook at upstream, where it has none. */
  unknownHook: { ...each(6 * HOUR), until: "there is one" },

  // Callers of the API.

  /** Upstream could not be asked whose token a caller shows, or what the caller may do. */
  callerAtUpstream: { ...each(5 * SECOND), until: "upstream answers" },
  /** A spent quota of a caller's: another process may have given back what it did not use. */
  spentQuota: { ...each(SECOND), until: "the window ends" },
  /** A read after a write, until upstream shows it. No replica of upstream's lags longer (`REPLICA_LAG_MS`). */
  writeShown: { firstMs: 200, longestMs: 4 * SECOND, withinMs: 10 * SECOND },
  /** The same after a forwarded write, whose answer does not tell whether there is a change to wait for. */
  forwardedWriteShown: { firstMs: 200, longestMs: 4 * SECOND, withinMs: 3 * SECOND },
  /** The transaction that stores a write: the caller reads next. As long as upstream itself works on a write. */
  writeStored: { firstMs: 50, longestMs: 2 * SECOND, patienceMs: 10 * SECOND },

  // Jobs. An attempt that a process did not survive counts as a takeover: `workers/worker.ts`.

  /** A job that failed. How often it is tried depends on the queue (`JOB_ATTEMPTS`). */
  job: { firstMs: SECOND, longestMs: MINUTE, until: "the queue's attempts are used up" },
  /** A delivery in Redis that Postgres does not take: it must reach Postgres soon after that is back. */
  inboxJob: { firstMs: SECOND, longestMs: 16 * SECOND, until: "Postgres takes it" },
  /** A delivery in Redis whose job failed for good: nothing else asks for it. */
  failedDelivery: { firstMs: MINUTE, longestMs: HOUR, until: "Postgres has it" },
  /** A job while Postgres is away. It costs no attempt. */
  jobWithoutPostgres: { ...each(2 * SECOND), until: "Postgres is back" },
  /** A job while upstream accepts no token. Nothing is wrong with the job: the operator has to replace the token. */
  jobWithoutToken: { ...each(MINUTE), until: "a token is accepted" },

  // Things that fail alone (the table `problems`), and marks.

  /** Upstream does not show it. It seldom comes back, and a 404 is never free: twelve requests a day at most. */
  absent: { firstMs: 5 * MINUTE, longestMs: 4 * HOUR, until: "upstream shows it" },
  /** Upstream refuses it. */
  refused: { firstMs: MINUTE, longestMs: HOUR, until: "upstream shows it" },
  /** Upstream fails. Its outages are mostly over within seconds. */
  unavailable: { firstMs: SECOND, longestMs: HOUR, until: "upstream answers" },
  /** Upstream is a mirror that is reading the thing just now. But its own upstream may be away. */
  unread: { firstMs: 2 * SECOND, longestMs: 15 * MINUTE, until: "the mirror has read it" },
  /** What a sweep finds and no catch-up explains: audits look for it. */
  unexplained: { firstMs: 5 * MINUTE, longestMs: 4 * HOUR, until: "the mirror holds it" },
  /** Tain itself fails. */
  own: { firstMs: SECOND, longestMs: HOUR, until: "it goes well" },
  /** A resource that upstream does not show yet. Then it is asked for only when the whole repository is confirmed. */
  missing: { firstMs: 10 * SECOND, longestMs: 10 * MINUTE, withinMs: 5 * MINUTE },
  /**
   * Mergeability, which upstream never computes for some pull requests. Then only a new reason asks again. The pace of
   * common questions may take minutes of it.
   */
  mergeability: { firstMs: 15 * SECOND, longestMs: 10 * MINUTE, withinMs: 20 * MINUTE },
  /** Making events of found changes, against merges that lock the same rows. The merge is over, so nothing waits. */
  foundChanges: { ...each(0), attempts: 3 },
  /** A look whether deliveries and refreshes have caught up. A copy has to end under any load. */
  givenWay: { ...each(250), withinMs: 5 * SECOND },

  // Events that go out.

  /** An event that its target did not accept. After some eleven failures it is sent once an hour. */
  event: { firstMs: 2 * SECOND, longestMs: HOUR, until: "TARGETS_RETRY_FOR is over" },
  /** A look at transactions that give out places in the log. They end within milliseconds. */
  logEnd: { firstMs: 2, longestMs: 200, withinMs: 3 * SECOND },
  /** `tain follow`, after its connection ended. */
  followedFeed: { firstMs: 500, longestMs: 30 * SECOND, until: "the command ends" },

  // Stores, replicas, the centre.

  /** Connecting to Redis. A request that waits for it must soon learn that it is back. */
  redisConnection: { ...each(500), until: "Redis is back" },
  /** Queues that Redis did not answer while they opened, although it was connected. */
  silentQueue: { ...each(500), until: "Redis answers" },
  /** Redis, after it did not answer for the quota at upstream. */
  redisForBudget: { ...each(SECOND), until: "Redis is back" },
  /** Redis, after it did not answer for callers' quotas. */
  redisForCallers: { ...each(SECOND), until: "Redis is back" },
  /** The same far from Redis, where a broken line swallows the question for seconds. */
  redisFarAway: { ...each(30 * SECOND), until: "Redis is back" },
  /** A look at how far a replica is, for one read. The wait is short. */
  replicaPosition: { firstMs: 1, longestMs: 8, until: "a tenth of a second is over" },
  /** The same at an edge after a write, whose look asks the centre, too. */
  edgePosition: { firstMs: 2, longestMs: 32, until: "a tenth of a second is over" },
  /** A replica that was left out. */
  replica: { firstMs: 200, longestMs: 10 * SECOND, until: "it has caught up" },
  /** The centre of an edge, which could not be reached. */
  centre: { ...each(SECOND), until: "the centre answers" },
  /** A migration that waits for a table. Together with the waits for the locks some two minutes. */
  migration: { firstMs: 200, longestMs: 2 * SECOND, attempts: 60 },
  /** A migration while another process migrates, which may take hours. */
  othersMigration: { ...each(200), until: "that process is done" },

  // The processes of `npm start`, and commands.

  /** The start of a program that ended by itself. Its fifth end within a minute ends the instance. */
  program: { firstMs: 200, longestMs: 1_600, attempts: 5 },
  /** A look whether the API is ready. */
  apiReady: { ...each(25), withinMs: 30 * SECOND },
  /** A look whether a ping has arrived. Upstream gives up a delivery after 10 s, and shows that a moment later. */
  ping: { ...each(200), withinMs: 15 * SECOND },
  /** A look at replayed deliveries, since the last was settled. Meanwhile workers try a passing failure a few times. */
  replay: { ...each(200), withinMs: 30 * SECOND },
  /** An audit while another process audits the repository: a worker's part takes seconds. */
  othersAudit: { ...each(500), withinMs: MINUTE },
  /** A look at backfills, while Postgres is away: for its restart, they only pause for a moment. */
  backfills: { ...each(500), withinMs: MINUTE },
} as const satisfies Record<string, RetryPolicy>;

/** How often a job of each queue is tried. */
export const JOB_ATTEMPTS = {
  // The delivery stands nowhere else, so one that fails is kept until a person acts.
  inbox: 8,
  deliveries: 8,
  // Each delivery of it that could not be applied gets a job of its own.
  bursts: 1,
  // Some twenty minutes of failures in a row.
  backfill: 20,
  catchUp: 8,
  // The scheduler asks for the next part within a minute.
  audit: 3,
  refresh: 8,
  // Events that wait for a target stand in Postgres, and are looked for there every two seconds.
  targets: 1,
  // A person waits for it.
  commands: 1,
  // The scheduler asks again within seconds.
  maintenance: 1,
  shards: 1,
} as const;

/** A thing that fails for a passing reason is tried so often by its queue, within seconds, before it is left alone. */
export const QUICK_ATTEMPTS = 3;

/** A job that keeps killing its worker must not do so for ever. The schedule or mark behind the job asks again. */
export const MOST_TAKEOVERS = 3;

/**
 * How often upstream may try a delivery, in the rhythm of `DELIVERY_CHECK_INTERVAL`. It will fail again, so then
 * upstream's state is read instead.
 */
export const DELIVERY_ATTEMPTS = 3;
