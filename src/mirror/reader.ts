import type { Database } from "../../db/database.ts";
import { Pace } from "../operations/pace.ts";
import { IssueLookups } from "./read/issue-lookups.ts";
import { Repositories } from "./read/repositories.ts";
import { SharedRows } from "./render/shared-rows.ts";
import type { StandingsReader } from "./unchanged/standings.ts";

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

/**
 * @param parts.db for what the answers to writes show as well: repositories and shared rows
 * @param parts.reads for what only reads need
 */
export function openMirrorReader({
  db,
  reads,
  standings,
}: {
  db: Database;
  reads: Database;
  standings: StandingsReader;
}): MirrorReader {
  return {
    standings,
    repositories: new Repositories(db),
    issues: new IssueLookups(reads),
    shared: new SharedRows(db, { maxBytes: MAX_SHARED_BYTES }),
    pace: new Pace(),
    [Symbol.asyncDispose]: () => standings[Symbol.asyncDispose](),
  };
}
