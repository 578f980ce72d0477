/**
 * The secondary limits, as one process keeps them for itself: how many requests are under way, the points of the last
 * minute, and the distance between writes. Upstream tells nobody how far these are used, so they are counted here, and
 * `quota-scripts.ts` says the same in Redis's words for all processes at once.
 */

/** Which of upstream's interfaces a request goes to: each has points of its own. */
export type Api = "rest" | "graphql";

/** GitHub docs: no more than 100 at once, REST and GraphQL together. */
export const mostUnderWay = 100;
/** GitHub docs: points a minute. */
export const pointsPerMinute: Record<Api, number> = { rest: 900, graphql: 2_000 };
/** GitHub docs: 1 for a request that reads, 5 for one that changes something. */
export const READ_POINTS = 1;
export const WRITE_POINTS = 5;
/** GitHub docs: a second between two writes. No more than 60 a minute follow from it, below the 80 that are allowed. */
export const writeGapMs = 1_000;
/** GitHub docs: what creates content is limited to 500 an hour; upstream does not say what counts, so every write does. */
export const writesPerHour = 500;
/** How long a write may stand in line before it is refused: as long as upstream itself would work on it. */
export const longestLineMs = 10_000;
/** Points count for a minute and a second more: upstream counts when a request arrives, and we when it leaves. */
export const pointsWindowMs = 61_000;
/** Points are summed up in slots of this length. */
export const slotMs = 2_000;
/** The place of a process that died is free after this time: longer than any request may take. */
export const placeMs = 120_000;
/** Nobody knows when one of the requests under way ends; it is looked at again after this time. */
export const fullWaitMs = 250;

/** What one request takes of the secondary limits. */
export interface Toll {
  /** Names the request among all processes. */
  id: string;
  api: Api;
  points: number;
  isWrite: boolean;
}

interface Spending {
  /** When each request's place is free again, should nobody say so. */
  underWay: Map<string, number>;
  points: Record<Api, Map<number, number>>;
  /** The first moment for the next write. */
  writeAt: number;
  /** When the present hour of writes ends, and how many it has had. */
  writeHourEnds: number;
  writes: number;
}

export class Pace {
  readonly #spending = new Map<string, Spending>();

  /** When the request may be made; 0: now. A class that leaves `floor` to those above leaves as much of these limits. */
  freeAt(credential: string, toll: Toll, floor: number, now: number): number {
    const { underWay, points, writeAt, writeHourEnds, writes } = this.#of(credential);
    let freeAt = 0;
    const running = [...underWay.values()].filter((until) => until > now).length;
    if (running >= mostUnderWay - Math.ceil(mostUnderWay * floor)) freeAt = now + fullWaitMs;

    const allowed = pointsPerMinute[toll.api] - Math.ceil(pointsPerMinute[toll.api] * floor);
    const slots = [...points[toll.api]].filter(([slot]) => leavesAt(slot) > now).sort(([a], [b]) => a - b);
    let excess = slots.reduce((sum, [, spent]) => sum + spent, toll.points) - allowed;
    for (const [slot, spent] of slots) {
      if (excess <= 0) break;
      excess -= spent;
      freeAt = Math.max(freeAt, leavesAt(slot));
    }
    if (toll.isWrite) {
      if (writeAt - now > longestLineMs) freeAt = Math.max(freeAt, writeAt - longestLineMs);
      if (writeHourEnds > now && writes >= writesPerHour) freeAt = Math.max(freeAt, writeHourEnds);
    }
    return freeAt;
  }

  /** Takes what the request needs; answers when it may be sent, which for a write may lie ahead. */
  enter(credential: string, toll: Toll, now: number): number {
    const spending = this.#of(credential);
    for (const [id, until] of spending.underWay) if (until <= now) spending.underWay.delete(id);
    spending.underWay.set(toll.id, now + placeMs);
    const sendAt = toll.isWrite ? Math.max(now, spending.writeAt) : now;
    if (toll.isWrite) {
      spending.writeAt = sendAt + writeGapMs;
      const isNewHour = spending.writeHourEnds <= now;
      spending.writes = isNewHour ? 1 : spending.writes + 1;
      if (isNewHour) spending.writeHourEnds = now + 3_600_000;
    }
    const points = spending.points[toll.api];
    for (const slot of points.keys()) if (leavesAt(slot) <= now) points.delete(slot);
    const slot = Math.floor(sendAt / slotMs);
    points.set(slot, (points.get(slot) ?? 0) + toll.points);
    return sendAt;
  }

  leave(credential: string, id: string): void {
    this.#spending.get(credential)?.underWay.delete(id);
  }

  #of(credential: string): Spending {
    let spending = this.#spending.get(credential);
    if (!spending) {
      const points = { rest: new Map<number, number>(), graphql: new Map<number, number>() };
      spending = { underWay: new Map(), points, writeAt: 0, writeHourEnds: 0, writes: 0 };
      this.#spending.set(credential, spending);
    }
    return spending;
  }
}

/** When the last of a slot's requests is no longer counted. */
function leavesAt(slot: number): number {
  return (slot + 1) * slotMs + pointsWindowMs;
}
