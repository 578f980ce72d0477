import type { Database } from "../../db/database.ts";
import type { Replicas } from "../../db/replicas.ts";
import { Pace } from "../work/pace.ts";
import { IssueLookups } from "./read/issue-lookups.ts";
import { Repositories } from "./read/repositories.ts";
import type { LeftOut } from "./render/left-out.ts";
import { SharedRows } from "./render/shared-rows.ts";
import { Kept, type RepositoryVersionsReader } from "./unchanged/unchanged.ts";

/** Enough for some 3,000 lists. */
const MAX_TOTALS_BYTES = 2 * 1024 * 1024;
/** Enough for the shown rows of some 20,000 people. */
const MAX_SHARED_BYTES = 56 * 1024 * 1024;

/** What the readers of one process share: gathered statements, and values that are kept while they are unchanged. */
export interface MirrorReader extends AsyncDisposable {
  repositoryVersions: RepositoryVersionsReader;
  repositories: Repositories;
  issues: IssueLookups;
  shared: SharedRows;
  leftOut: LeftOut;
  /** How many rows a list of a repository has. */
  totals: Kept<{ total: number }>;
  /** Bounds how long slow answers, together, hold the event loop. */
  pace: Pace;
}

/**
 * @param parts.db for repositories and shared rows, which answers to writes show too
 * @param parts.reads for rows that only reads need
 * @param parts.repositoryVersions reads the revisions of repositories
 * @param parts.leftOut for rows that cannot be shown
 * @param parts.replicas for reads that cost the primary more than its WAL position does; look-ups by key cost less
 */
export function openMirrorReader({
  db,
  reads,
  repositoryVersions,
  replicas,
  leftOut,
}: {
  db: Database;
  reads: Database;
  repositoryVersions: RepositoryVersionsReader;
  replicas: Replicas | null;
  leftOut: LeftOut;
}): MirrorReader {
  return {
    repositoryVersions,
    repositories: new Repositories(db),
    issues: new IssueLookups(reads),
    shared: new SharedRows(db.readingFrom(replicas), { maxBytes: MAX_SHARED_BYTES, leftOut }),
    leftOut,
    totals: new Kept({ maxBytes: MAX_TOTALS_BYTES, bytesOf: () => 16 }),
    pace: new Pace(),
    [Symbol.asyncDispose]: () => repositoryVersions[Symbol.asyncDispose](),
  };
}
