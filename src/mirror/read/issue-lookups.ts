import type { Database } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { Gather } from "../../work/gather.ts";

export interface FoundIssue {
  number: number;
  document: string;
  body: string | null;
  updatedAt: Date;
}

/** One number of a repository. */
interface IssueLookup {
  /** "deleted": upstream deleted it. Null: there is none. */
  issue: FoundIssue | "deleted" | null;
  /** Whether the number is, or was, a pull request's. */
  isPull: boolean;
}

interface Key {
  repositoryId: number;
  number: number;
}

interface KeyedIssueRow {
  number: number;
  /** Null: there is no row. */
  pull: boolean | null;
  document: string;
  body: string | null;
  /** Null: there is no row. */
  id: number | null;
  /** Null: there is no row. */
  updated: number | null;
  deleted: boolean;
}

/** Finds single issues. Requests of one moment share a statement. */
export class IssueLookups {
  readonly #gathered: Gather<Key, IssueLookup>;

  constructor(db: Database) {
    this.#gathered = new Gather((keys) => lookUpIssues(db, keys));
  }

  find(repositoryId: number, number: number): Promise<IssueLookup> {
    return this.#gathered.ask({ repositoryId, number });
  }
}

async function lookUpIssues(db: Database, keys: readonly Key[]): Promise<IssueLookup[]> {
  // Written as text here, which is several times as quick as the driver's way.
  const repositories = `{${keys.map((key) => key.repositoryId).join(",")}}`;
  const numbers = `{${keys.map((key) => key.number).join(",")}}`;
  const rows = await db.prepared<KeyedIssueRow>(
    sql`select i.number, i.is_pull_request as pull, i.document::text as document, i.body, i.id, i.deleted_at is not null as deleted,
        (extract(epoch from greatest(i.updated_at, i.changed_at)) * 1000)::float8 as updated
      from unnest((select ${repositories}::bigint[]), (select ${numbers}::integer[])) with ordinality as x(r, n, at)
      left join issues i on i.repository_id = x.r and i.number = x.n order by x.at`,
  );
  return rows.map((row) => ({ issue: row.deleted ? "deleted" : foundIssue(row), isPull: row.pull ?? false }));
}

function foundIssue({ id, number, document, body, updated }: KeyedIssueRow): FoundIssue | null {
  return id === null || updated === null ? null : { number, document, body, updatedAt: new Date(updated) };
}
