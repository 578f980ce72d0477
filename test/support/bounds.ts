/**
 * How long a test waits for what must happen. When ten busy processes shared two slow cores, starting everything and
 * copying a world took 75 s. When all test files ran at once, it took longer. This ends a wait that hangs.
 */
export const PATIENCE_MS = 240_000;

/** How long a test may take, unless it says otherwise. A test fails by its own waits before this time is over. */
export const TEST_MS = 300_000;

/** How long the few tests may take that each do minutes of work on a slow machine. */
export const LONG_TEST_MS = 600_000;
