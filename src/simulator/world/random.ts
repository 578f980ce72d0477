/** Deterministic randomness: the same seed gives the same world, the same faults, the same live stream. */
export interface Random {
  /** In [0, 1). */
  next(): number;
  /** Whole number in [low, high]. */
  int(low: number, high: number): number;
  pick<Item>(from: readonly Item[]): Item;
  chance(probability: number): boolean;
  /** `digits` lower-case hexadecimal digits. */
  hex(digits: number): string;
}

/** Mulberry32: small, fast, good enough for a simulation; not for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  return {
    next,
    int: (low, high) => low + Math.floor(next() * (high - low + 1)),
    pick: (from) => {
      if (from.length === 0) throw new Error("Cannot pick from an empty list");
      // Below the length, so there is an item.
      return from[Math.floor(next() * from.length)] as (typeof from)[number];
    },
    chance: (probability) => next() < probability,
    hex: (digits) => {
      let text = "";
      while (text.length < digits)
        text += Math.floor(next() * 4_294_967_296)
          .toString(16)
          .padStart(8, "0");
      return text.slice(0, digits);
    },
  };
}
