import type { Database } from "../../db/database.ts";
import type { Replicas } from "../../db/replicas.ts";
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
 * @param parts.standings what tells how things stand
 * @param parts.replicas for what takes the primary longer than to say where it is; lookups by key do not
 */
export function openMirrorReader({
  db,
  reads,
  standings,
  replicas,
}: {
  db: Database;
  reads: Database;
  standings: StandingsReader;
  replicas: Replicas | null;
}): MirrorReader {
  return {
    standings,
    repositories: new Repositories(db),
    issues: new IssueLookups(reads),
    shared: new SharedRows(db.readingFrom(replicas), { maxBytes: MAX_SHARED_BYTES }),
    pace: new Pace(),
    [Symbol.asyncDispose]: () => standings[Symbol.asyncDispose](),
  };
}
