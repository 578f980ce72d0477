import type { Database } from "../../../db/database.ts";
import { COMPARED_REVISION, PEOPLE } from "../../../db/revisions.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import { Gather } from "../../work/gather.ts";
import type { RepositoryVersions } from "../unchanged/unchanged.ts";

export interface FoundIssue {
  number: number;
  document: string;
  body: string | null;
  updatedAt: Date;
}

/** One number of a repository, and how the repository and people stood when it was read. */
interface IssueLookup {
  /** "deleted": upstream deleted it. Null: there is none. */
  issue: FoundIssue | "deleted" | null;
  /** Whether the number is, or was, a pull request's. */
  isPull: boolean;
  repositoryVersions: RepositoryVersions;
}

interface Key {
  repositoryId: number;
  number: number;
}

interface KeyedIssueRow {
  repository_id: string;
  number: number;
  /** Null: there is no row. */
  pull: boolean | null;
  document: string;
  body: string | null;
  /** Null: there is no row. */
  id: string | null;
  /** Null: there is no row. */
  updated: number | null;
  deleted: boolean;
  people: string | null;
  revision: string | null;
  mirrored: boolean | null;
  confirmed: number | null;
  missing: string | null;
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

/**
 * Each row also has the versions of its repository and of people. A second statement would double the cost of the
 * answer.
 */
async function lookUpIssues(db: Database, keys: readonly Key[]): Promise<IssueLookup[]> {
  // Written as text here, which is several times as quick as the driver's way.
  const repositories = `{${keys.map((key) => key.repositoryId).join(",")}}`;
  const numbers = `{${keys.map((key) => key.number).join(",")}}`;
  const rows = await db.prepared<KeyedIssueRow>(
    sql`select x.r as repository_id, i.number, i.is_pull_request as pull, i.document::text as document, i.body, i.id, i.deleted_at is not null as deleted,
        (extract(epoch from greatest(i.updated_at, i.changed_at)) * 1000)::float8 as updated,
        (select ${COMPARED_REVISION} from (select) one left join revisions v on v.repository_id = ${PEOPLE}) as people,
        ${COMPARED_REVISION} as revision, ${MIRRORED} as mirrored, (extract(epoch from s.confirmed_at) * 1000)::float8 as confirmed,
        s.parts_missing as missing
      from unnest((select ${repositories}::bigint[]), (select ${numbers}::integer[])) with ordinality as x(r, n, at)
      left join issues i on i.repository_id = x.r and i.number = x.n
      left join revisions v on v.repository_id = x.r left join repository_syncs s on s.repository_id = x.r order by x.at`,
  );
  return rows.map((row) => lookupOf(row));
}

function lookupOf(row: KeyedIssueRow): IssueLookup {
  const confirmedAt = row.confirmed === null ? null : new Date(Math.floor(row.confirmed));
  return {
    issue: row.deleted ? "deleted" : foundIssue(row),
    isPull: row.pull ?? false,
    repositoryVersions: new Map([
      [PEOPLE, { revision: row.people, isMirrored: false, confirmedAt: null, missing: null }],
      [
        Number(row.repository_id),
        { revision: row.revision, isMirrored: row.mirrored ?? false, confirmedAt, missing: row.missing },
      ],
    ]),
  };
}

function foundIssue({ id, number, document, body, updated }: KeyedIssueRow): FoundIssue | null {
  return id === null || updated === null ? null : { number, document, body, updatedAt: new Date(updated) };
}
