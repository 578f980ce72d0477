import { randomUUID } from "node:crypto";
import type { Database } from "./database.ts";
import { isPostgresOutage } from "./outage.ts";
import { sql } from "./sql.ts";

/**
 * How long work is held without being renewed. Shorter than a queue takes to hand a killed process's job over (`workers/worker.ts`),
 * so that the next process finds it free.
 */
const HELD_MS = 5_000;
const RENEW_MS = 1_500;
/** The part of a hold after which work that could not be renewed is told to stop. The rest is its time to hear of that. */
const GIVEN_UP_AFTER = 0.8;

interface Holding {
  db: Database;
  log: { warn(what: object, text: string): void };
}

/** Another process may do the same work by now, so this one must stop. */
export class NotAloneError extends Error {
  override name = "NotAloneError";
}

/**
 * Does work that must not run twice at once in any process. Answers null when another process does it already.
 *
 * The hold is a row that is renewed while the work goes on, so it takes no session of its own and passes any pooler. A killed
 * process holds nothing up for longer than `heldMs`. A process that stood still, or was cut off from Postgres, soon loses its hold:
 * `work`'s signal aborts before another process can begin, if this one runs at all.
 * @param options.signal aborts `work`'s signal, too
 */
export async function alone<T>(
  { db, log }: Holding,
  name: string,
  work: (signal: AbortSignal) => Promise<T>,
  {
    signal,
    heldMs = HELD_MS,
    renewMs = RENEW_MS,
  }: { signal?: AbortSignal | undefined; heldMs?: number; renewMs?: number } = {},
): Promise<T | null> {
  const holder = randomUUID();
  const until = sql`clock_timestamp() + ${heldMs} * interval '1 ms'`;
  const begunAt = performance.now();
  // Where two ask at once, the second waits for the first's commit, and then sees its hold.
  const held = await db.count(sql`
    insert into exclusive_work as w (name, holder, held_until) values (${name}, ${holder}, ${until})
      on conflict (name) do update set holder = excluded.holder, held_until = excluded.held_until
        where w.held_until < clock_timestamp()`);
  if (held === 0) return null;

  const lost = new AbortController();
  const lose = (options?: ErrorOptions) =>
    lost.abort(new NotAloneError(`Another process may have begun ${name} meanwhile`, options));
  let failure: unknown;
  let givenUpAt = 0;
  let giving: NodeJS.Timeout | null = null;
  /** Counts from the moment at which the hold was asked for: it ends no earlier than that long after it. */
  const holdFrom = (askedAt: number) => {
    if (giving) clearTimeout(giving);
    givenUpAt = askedAt + GIVEN_UP_AFTER * heldMs;
    // Also where a renewal waits for a connection, which no time-out of a statement bounds.
    giving = setTimeout(() => lose({ cause: failure }), Math.max(0, givenUpAt - performance.now()));
  };
  let timer: NodeJS.Timeout | null = null;
  const renew = async () => {
    const askedAt = performance.now();
    if (askedAt >= givenUpAt) return lose({ cause: failure });
    try {
      // What nobody else has taken is still ours, however late.
      const renewed = await db.count(
        sql`update exclusive_work set held_until = ${until} where name = ${name} and holder = ${holder}`,
        { timeoutMs: Math.max(1, Math.floor(givenUpAt - askedAt)) },
      );
      if (renewed === 0) return lose();
      if (!hasEnded) holdFrom(askedAt);
    } catch (error) {
      failure = error;
      log.warn({ name, err: error }, "What must not run twice at once could not be renewed");
    }
    plan();
  };
  let renewing: Promise<void> = Promise.resolve();
  let hasEnded = false;
  const plan = () => {
    if (hasEnded || lost.signal.aborted) return;
    timer = setTimeout(() => {
      renewing = renew();
    }, renewMs);
  };
  holdFrom(begunAt);
  plan();
  try {
    return await work(signal ? AbortSignal.any([lost.signal, signal]) : lost.signal);
  } finally {
    hasEnded = true;
    if (timer) clearTimeout(timer);
    if (giving) clearTimeout(giving);
    await renewing;
    await letGo({ db, log }, name, holder);
  }
}

/** Never throws: the work is done or has failed by now, that is what has to be told, and the hold ends by itself. */
async function letGo({ db, log }: Holding, name: string, holder: string): Promise<void> {
  try {
    await db.count(sql`delete from exclusive_work where name = ${name} and holder = ${holder}`);
  } catch (error) {
    if (!isPostgresOutage(error)) log.warn({ name, err: error }, "What was held could not be let go");
  }
}
