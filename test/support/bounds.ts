/**
 * How long a test waits for what must happen. A machine that is ten times slower than usual still meets it; what hangs ends by
 * it.
 */
export const PATIENCE_MS = 100_000;

/** How long a test may take, unless it says otherwise: it fails by what it waits for, and not by this. */
export const TEST_MS = 120_000;

/** How long the few tests may take that each do minutes of work on a slow machine. */
export const LONG_TEST_MS = 600_000;
