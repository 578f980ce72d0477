/**
 * Upstream's documented limits, and our distance from them. Upstream does not say how much of the secondary limits is
 * used, so `scripts.ts` counts the requests of all processes.
 */

/** Which of upstream's interfaces a request goes to: each has points of its own. */
export type UpstreamApi = "rest" | "graphql";

/** GitHub docs: no more than 100 at once, REST and GraphQL together. */
export const CONCURRENT_PER_USER = 100;
/** GitHub docs: points a minute. */
export const POINTS_PER_MINUTE: Readonly<Record<UpstreamApi, number>> = { rest: 900, graphql: 2_000 };
/** GitHub docs: 1 for a request that reads, 5 for one that changes something. */
export const READ_POINTS = 1;
export const WRITE_POINTS = 5;
/** GitHub docs: a second between two writes. No more than 60 a minute follow from it, below the 80 that are allowed. */
export const WRITE_GAP_MS = 1_000;
/** GitHub docs: 500 requests an hour that create content. Upstream does not say which do, so every write counts. */
export const WRITES_PER_HOUR = 500;
/** How long a write may stand in line before it is refused: as long as upstream itself would work on it. */
export const LONGEST_LINE_MS = 10_000;
/** Points count for a minute and a second more: upstream counts when a request arrives, and we when it leaves. */
export const POINTS_WINDOW_MS = 61_000;
/** Points are summed up in slots of this length. */
export const SLOT_MS = 2_000;
/** The place of a process that died is free after this time: longer than any request may take. */
export const PLACE_MS = 120_000;
/** When to look again for a free place among the requests under way: their ends cannot be predicted. */
export const FULL_WAIT_MS = 250;

/** Headers of one window may name its end a second apart. The shortest windows last a minute. */
export const SAME_WINDOW_S = 5;
/** A block that follows the last one within this time is a repetition. */
export const REPETITION_MS = 15 * 60_000;
/** How long the one request that tries a rejected token again may take before another may. */
export const TRIAL_MS = 60_000;
/**
 * The same for a request to an unknown bucket: GitHub gives up after 10 s, and a process that was killed never answers.
 */
export const PROBE_MS = 10_000;
/** When to look again whether the requests that ask an unknown bucket have been answered. */
export const PROBE_WAIT_MS = 100;
/** How long an answer without quota headers is believed. */
export const UNMETERED_MS = 60_000;
/**
 * The clocks of our processes may differ by this much. A time in Redis that lies further ahead than it can was stored
 * by a process whose clock ran ahead, and counts as over: its process may have died, and nobody else would end it.
 */
export const SHARED_CLOCKS_APART_MS = 60_000;
