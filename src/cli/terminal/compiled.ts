import { fileURLToPath } from "node:url";

/**
 * Where Node keeps what it has compiled, so that the next start does without: half of its processor time. The launcher
 * names the same place. Where it cannot be written, Node does without.
 */
export const COMPILED = fileURLToPath(new URL("../../../node_modules/.cache/compiled", import.meta.url));
