/**
 * Each test process loads this first, by vitest.config.ts. Vitest that is stopped leaves its test processes alone, and
 * one whose test waits would go on waiting.
 */
const exit = process.exit.bind(process); // Vitest replaces it by a function that throws.
process.once("disconnect", () => exit(1));
