/**
 * How long a test waits for what must happen. Among ten busy processes on two slow cores, to start everything and copy a
 * world took 75 s, and all test files at once took longer. What hangs ends by this.
 */
export const PATIENCE_MS = 240_000;

/** How long a test may take, unless it says otherwise: it fails by what it waits for, and not by this. */
export const TEST_MS = 300_000;

/** How long the few tests may take that each do minutes of work on a slow machine. */
export const LONG_TEST_MS = 600_000;
