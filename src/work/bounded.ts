/**
 * The bound of an `LRUCache` that holds so many entries. Its own `max` would allocate all of them at once, which takes
 * 14 ms of every start for 100,000.
 */
export function mostEntries(most: number): { maxSize: number; sizeCalculation: () => number } {
  return { maxSize: most, sizeCalculation: () => 1 };
}
