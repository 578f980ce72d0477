import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A recording of the real service. It lies beside the checkout, because the project may not give it away. */
export interface Recording {
  path: string;
  exists: boolean;
  /** Says in a test's name why the test may be skipped; the report of the run prints that name. */
  reason: string;
}

export function findRecording(file: string): Recording {
  const path = fileURLToPath(new URL(`../../../shared/data/${file}`, import.meta.url));
  return { path, exists: existsSync(path), reason: `(skipped without ../shared/data/${file})` };
}
