import type { Database } from "../../db/database.ts";
import type { Config } from "../config.ts";
import { Pace } from "../operations/pace.ts";
import { IssueLookups } from "./read/issue-lookups.ts";
import { Repositories } from "./read/repositories.ts";
import { SharedRows } from "./render/shared-rows.ts";
import { StandingsReader } from "./unchanged/standings.ts";

/** Enough for the shown rows of some 20,000 people. */
const MAX_SHARED_BYTES = 56 * 1024 * 1024;

/** What the readers of one process share: gathered statements, and values that are kept while they are unchanged. */
export interface MirrorReader extends AsyncDisposable {
  standings: StandingsReader;
  repositories: Repositories;
  issues: IssueLookups;
  shared: SharedRows;
  /** How long answers that take long hold the event loop, all of them together. */
  pace: Pace;
}

/** @param parts.reads for what only reads need; the answers to writes show repositories and shared rows, too */
export function openMirrorReader({
  db,
  reads,
  config,
}: {
  db: Database;
  reads: Database;
  config: Pick<Config, "databaseUrl" | "databaseDirectUrl">;
}): MirrorReader {
  const standings = new StandingsReader(config);
  return {
    standings,
    repositories: new Repositories(db),
    issues: new IssueLookups(reads),
    shared: new SharedRows(db, { maxBytes: MAX_SHARED_BYTES }),
    pace: new Pace(),
    [Symbol.asyncDispose]: () => standings[Symbol.asyncDispose](),
  };
}
