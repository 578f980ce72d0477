import type { Database } from "../../../db/database.ts";
import type { FollowedState } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import type { MirrorPart } from "../../config/parts.ts";
import { Gather } from "../../work/gather.ts";
import { MARK_COLUMNS, type Mark, type MarkKey } from "../store/marks.ts";
import { findEach } from "./each.ts";

/** A mirrored repository, as every job about it needs it. */
export interface MirroredRepository {
  id: number;
  nodeId: string | null;
  fullName: string;
  htmlUrl: string | null;
  state: FollowedState;
  /** The parts that are mirrored beside issues and pull requests. */
  mirrors: readonly MirrorPart[];
}

/** A repository that was mirrored. Its rows are kept, and no job works on it. */
export type GoneRepository = Omit<MirroredRepository, "state"> & { state: "gone" };

/** The number of comments on an issue, by upstream's own count. */
export interface CommentCount {
  repositoryId: number;
  number: number;
  comments: number;
}

/** Short reads that many jobs make. Jobs that make the same one at the same time share a statement. */
export class JobReads {
  readonly #repositories: Gather<number, MirroredRepository | GoneRepository | null>;
  readonly #marks: Gather<MarkKey, Mark | null>;
  readonly #lacking: Gather<readonly CommentCount[], number[]>;

  constructor(db: Database) {
    this.#repositories = new Gather((ids) => findRepositories(db, ids));
    this.#marks = new Gather((keys) => findMarks(db, keys));
    this.#lacking = new Gather((counts) => findLackingComments(db, counts));
  }

  /** A repository that is mirrored, live or not; null for any other, also for one that is gone. */
  async repository(id: number): Promise<MirroredRepository | null> {
    const known = await this.knownRepository(id);
    return known?.state === "gone" ? null : known;
  }

  /** A repository that is mirrored, or was; null for any other. */
  knownRepository(id: number): Promise<MirroredRepository | GoneRepository | null> {
    return this.#repositories.ask(id);
  }

  mark(key: MarkKey): Promise<Mark | null> {
    return this.#marks.ask(key);
  }

  /** The numbers of those issues that have more comments than are stored. */
  lackingComments(counts: readonly CommentCount[]): Promise<number[]> {
    return this.#lacking.ask(counts);
  }
}

async function findRepositories(
  db: Database,
  ids: readonly number[],
): Promise<(MirroredRepository | GoneRepository | null)[]> {
  const repositories = await db.prepared<MirroredRepository | GoneRepository>(sql`
    select r.id, r.node_id as "nodeId", r.full_name as "fullName", r.html_url as "htmlUrl", s.state, s.mirrors
      from repositories r join repository_syncs s on s.repository_id = r.id
      where r.id = any(${sql.array([...new Set(ids)], "bigint")}::bigint[])`);
  const found = new Map(repositories.map((one) => [one.id, one]));
  return ids.map((id) => found.get(id) ?? null);
}

async function findMarks(db: Database, keys: readonly MarkKey[]): Promise<(Mark | null)[]> {
  return await findEach<Mark>(
    db,
    keys,
    ["kind", "repositoryId", "key"],
    (x) => sql`
    select x.at, ${MARK_COLUMNS} from ${x}
      join refresh_marks m on m.kind = x.kind and m.repository_id = x.repository_id and m.key = x.key`,
  );
}

async function findLackingComments(db: Database, asked: readonly (readonly CommentCount[])[]): Promise<number[][]> {
  const counts = asked.flatMap((some, at) => some.map((one) => ({ ...one, at })));
  const column = (of: keyof (typeof counts)[number], type: "bigint" | "integer") =>
    sql.array(
      counts.map((one) => one[of]),
      type,
    );
  const rows = await db.prepared<{ at: number; number: number }>(sql`
    select x.at, x.number
      from unnest(${column("at", "integer")}, ${column("repositoryId", "bigint")}, ${column("number", "integer")},
        ${column("comments", "integer")}) as x(at, repository_id, number, comments)
      where x.comments > (select count(*) from issue_comments c
        where c.repository_id = x.repository_id and c.issue_number = x.number and c.deleted_at is null)
      order by x.number`);
  return asked.map((_, at) => rows.filter((row) => row.at === at).map(({ number }) => number));
}
