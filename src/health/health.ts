import { WriteProbe, type WriteRefusal } from "../inbox/write-probe.ts";
import { whileSilent, withPatience } from "../operations/redis.ts";
import { waitUnlessAborted } from "../waits/repeated.ts";
import { type HealthContext, readSigns, type Signs } from "./signs.ts";
import { momentText, type Trouble, troublesIn } from "./troubles.ts";

/** Whether all is well: the same in `tain status`, on the operator's page and in `/-/status`. */
export interface Health {
  /** As bad as the worst trouble is. "unknown": no trouble is known, and not everything could be asked. */
  state: "well" | "warning" | "problem" | "unknown";
  /** The worst trouble in one line: what is wrong, since when, what to do, and how many more there are. */
  line: string;
  /** The worst first. `since` is ISO 8601 by our clock; null: not known. */
  troubles: (Omit<Trouble, "since"> & { since: string | null })[];
  /** How many processes of each role run; null: Redis could not be asked. */
  processes: { role: string; living: number }[] | null;
  /** What could not be asked. */
  unknown: string[];
}

/** What a process remembers between two looks. */
interface Memory {
  refusal?: () => Promise<WriteRefusal | null>;
  /** When each trouble was first seen, epoch milliseconds by our clock. It serves while Redis is away. */
  firstSeen?: Map<string, number>;
}

/** Looks whether all is well. Never fails for a store that is away: that is a trouble. */
export async function loadHealth(ctx: HealthContext, { refusal, firstSeen }: Memory = {}): Promise<Health> {
  const signs = await readSigns(ctx, refusal);
  const unknown = unknownIn(signs);
  const found = troublesIn(signs);
  const undated = found.filter(({ since }) => since === null).map(({ name }) => name);
  const dates = await firstSeenOf(ctx, undated, { isAllKnown: unknown.length === 0, firstSeen });
  const troubles = found.map((trouble) => {
    const seen = dates.get(trouble.name);
    return { ...trouble, since: trouble.since ?? (seen === undefined ? null : new Date(seen)) };
  });
  return {
    state: troubles.some(({ level }) => level === "problem")
      ? "problem"
      : troubles.length > 0
        ? "warning"
        : unknown.length > 0
          ? "unknown"
          : "well",
    line: lineOf(troubles, unknown),
    troubles: troubles.map(({ since, ...trouble }) => ({ ...trouble, since: since?.toISOString() ?? null })),
    processes: signs.processes?.map(({ role, living }) => ({ role, living })) ?? null,
    unknown,
  };
}

/** Pure. */
function lineOf(troubles: readonly Trouble[], unknown: readonly string[]): string {
  const [worst] = troubles;
  if (!worst)
    return unknown.length === 0 ? "All is well" : `Nothing is known to be wrong; not asked: ${unknown.join(", ")}`;
  const since = worst.since === null ? "" : `, since ${momentText(worst.since)}`;
  const more = troubles.length > 1 ? ` (and ${troubles.length - 1} more)` : "";
  return `${worst.says}${since}. ${worst.todo}${more}`;
}

/** The parts that may not answer, in words. */
const PARTS = [
  ["processes", "processes"],
  ["quota", "upstream's quota"],
  ["upstream", "whether upstream answers"],
  ["webhooks", "refused webhooks"],
  ["jobs", "failed jobs"],
  ["mirror", "the mirror"],
] as const satisfies readonly (readonly [keyof Signs, string])[];

function unknownIn(signs: Signs): string[] {
  return PARTS.flatMap(([part, words]) => (signs[part] === null ? [words] : []));
}

/**
 * When troubles without a date of their own were first seen. Redis keeps that for all processes, and forgets it once
 * the trouble is over. While Redis takes nothing, the memory serves; without one, it is not known.
 * @param names the troubles of now
 */
async function firstSeenOf(
  { config, redis, clock }: HealthContext,
  names: readonly string[],
  { isAllKnown, firstSeen }: { isAllKnown: boolean; firstSeen: Map<string, number> | undefined },
): Promise<ReadonlyMap<string, number>> {
  const key = `${config.redisPrefix}:troubles`;
  const now = clock.now().getTime();
  const kept = await withPatience(redis, () => redis.hgetall(key)).catch(whileSilent(null));
  const dates = new Map<string, number>();
  for (const name of names) {
    const date = kept?.[name] === undefined ? (firstSeen?.get(name) ?? now) : Number(kept[name]);
    dates.set(name, date);
    firstSeen?.set(name, date);
  }
  for (const name of firstSeen?.keys() ?? []) if (!dates.has(name)) firstSeen?.delete(name);
  const fresh = names.filter((name) => kept?.[name] === undefined);
  if (fresh.length > 0) {
    const noted = Object.fromEntries([...dates].filter(([name]) => fresh.includes(name)));
    const isKept =
      kept !== null && (await withPatience(redis, () => redis.hset(key, noted)).catch(whileSilent(null))) !== null;
    if (!isKept && !firstSeen) for (const name of fresh) dates.delete(name);
  }
  const over = isAllKnown ? Object.keys(kept ?? {}).filter((name) => !dates.has(name)) : [];
  if (over.length > 0) await withPatience(redis, () => redis.hdel(key, ...over)).catch(whileSilent(0));
  return dates;
}

/** Several that ask within this time have one answer. */
const SHARED_MS = 1_000;
/** How often a web process looks by itself, for the log and for the dates of troubles. */
const WATCHED_EVERY_MS = 30_000;

/** Looks whether all is well, for the parts of a web process. */
export class HealthWatch {
  readonly #ctx: HealthContext;
  readonly #probe: WriteProbe;
  readonly #firstSeen = new Map<string, number>();
  readonly #stopping = new AbortController();
  #looked: { health: Promise<Health>; at: number } | null = null;
  #looking: Promise<void> | null = null;
  #logged = "";

  constructor(ctx: HealthContext) {
    this.#ctx = ctx;
    this.#probe = new WriteProbe(ctx);
  }

  /** Whether Postgres takes writes, as of a moment ago. */
  readonly refusal = (): Promise<WriteRefusal | null> => this.#probe.refusal();

  /** As of a second ago at most. */
  async health(): Promise<Health> {
    // By the monotonic clock.
    const now = performance.now();
    if (this.#looked === null || now - this.#looked.at > SHARED_MS) {
      const health = loadHealth(this.#ctx, { refusal: this.refusal, firstSeen: this.#firstSeen });
      this.#looked = { health, at: now };
    }
    return await this.#looked.health;
  }

  /** Looks from time to time, and logs what has changed. */
  begin(): void {
    this.#looking ??= this.#look();
  }

  async #look(): Promise<void> {
    for (;;) {
      await waitUnlessAborted(WATCHED_EVERY_MS, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
      try {
        this.#tell(await this.health());
      } catch (error) {
        this.#ctx.log.error({ err: error }, "It cannot be said whether all is well");
      }
    }
  }

  #tell({ state, line, troubles }: Health): void {
    const names = troubles.map(({ name }) => name);
    if (names.join() === this.#logged) return;
    this.#logged = names.join();
    if (state === "well") this.#ctx.log.info("All is well again");
    else if (names.length > 0) this.#ctx.log.warn({ troubles: names, line }, "Not all is well");
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#looking;
  }
}
