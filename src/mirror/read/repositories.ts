import type { Database } from "../../../db/database.ts";
import { COMPARED_REVISION, PEOPLE } from "../../../db/revisions.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import { Gather } from "../../work/gather.ts";
import { Kept, type Reading, type Recalled, type Standing, type Standings } from "../unchanged/unchanged.ts";
import { mirroredWhere, SHOWN_COLUMNS, type ShownRepository } from "./shown-repository.ts";
import { type Sight, sees, visible } from "./sight.ts";

/** Enough for 10,000 names, roughly. */
const MAX_NAME_BYTES = 10 * 1024 * 1024;
const BYTES_PER_REPOSITORY = 500;

/** A row with this name. Two rows can have one name for a moment; the newer observation tells which one has it now. */
interface Bearer {
  repository: ShownRepository;
  isMirrored: boolean;
}

/** How a path names a repository: by its name, or by its id. Both are null for an id that no repository can have. */
export interface RepositoryName {
  fullName: string | null;
  id: number | null;
}

/** The repositories that had a name at its last look-up, newest observation first, as far as the caller sees them. */
export interface RecalledRepository {
  repository: ShownRepository;
  /** All rows that had the name. */
  ids: readonly number[];
  recalled: Recalled<readonly Bearer[]>;
}

/** Finds single repositories. Requests of one moment share a statement. */
export class Repositories {
  readonly #kept = new Kept<readonly Bearer[]>({
    maxBytes: MAX_NAME_BYTES,
    bytesOf: ({ length }) => length * BYTES_PER_REPOSITORY,
  });
  readonly #named: Gather<string, readonly Bearer[]>;
  readonly #numbered: Gather<number, ShownRepository | null>;

  constructor(db: Database) {
    this.#named = new Gather((names) => this.#findNamed(db, names));
    this.#numbered = new Gather((ids) => findNumbered(db, ids));
  }

  /** The repository that has this name now, in any case of its letters. */
  async named(fullName: string, sight: Sight): Promise<ShownRepository | null> {
    return seenAmong(await this.#named.ask(fullName.toLowerCase()), sight);
  }

  /** The same, from memory if nothing has changed. */
  async namedOrKept(fullName: string, sight: Sight, reading: Reading): Promise<ShownRepository | null> {
    const recalled = this.recall(fullName, sight);
    const confirmed = recalled && this.confirm(recalled, await reading.now([PEOPLE, ...recalled.ids]));
    return confirmed ?? this.named(fullName, sight);
  }

  async byId(id: number, sight: Sight): Promise<ShownRepository | null> {
    const found = await this.#numbered.ask(id);
    return found && sees(sight, found, "metadata") ? found : null;
  }

  /** @param reading for a name that may be found in memory */
  async at({ fullName, id }: RepositoryName, sight: Sight, reading?: Reading): Promise<ShownRepository | null> {
    if (fullName === null) return id === null ? null : this.byId(id, sight);
    return reading ? this.namedOrKept(fullName, sight, reading) : this.named(fullName, sight);
  }

  /**
   * The repository from the last look-up of the name, without asking Postgres; see `confirm`. Undefined: none that the
   * caller sees.
   */
  recall(fullName: string, sight: Sight): RecalledRepository | undefined {
    const recalled = this.#kept.recall(fullName.toLowerCase());
    const repository = recalled && seenAmong(recalled.value, sight);
    return recalled && repository ? { repository, ids: recalled.basis.shown, recalled } : undefined;
  }

  /** The recalled repository, if it is unchanged. A repository that takes over the name changes a revision too. */
  confirm({ repository, recalled }: RecalledRepository, now: Standings): ShownRepository | null {
    if (!this.#kept.stands(recalled, now)) return null;
    const { confirmedAt = null, missing = null } = now.get(repository.id) ?? {};
    return { ...repository, confirmedAt, missing };
  }

  async #findNamed(db: Database, names: readonly string[]): Promise<(readonly Bearer[])[]> {
    const asked = [...new Set(names)];
    const rows = await db.prepared<ShownRepository & { asked: string; mirrored: boolean; revision: string | null }>(
      sql`select x.name as asked, ${SHOWN_COLUMNS}, s.state is not null and ${MIRRORED} as mirrored, ${COMPARED_REVISION} as revision
        from unnest(${sql.array(asked, "text")}) as x(name)
        join repositories r on lower(r.full_name) = x.name and r.deleted_at is null
        left join repository_syncs s on s.repository_id = r.id left join revisions v on v.repository_id = r.id
        order by r.seen_at desc`,
    );
    const found = Map.groupBy(rows, (row) => row.asked);
    return names.map((name) => {
      const bearers: Bearer[] = [];
      // The statement that reads the rows also reads these standings, so no change can come between.
      const stood = new Map<number, Standing>();
      for (const { asked: _, mirrored: isMirrored, revision, ...repository } of found.get(name) ?? []) {
        bearers.push({ repository, isMirrored });
        const { confirmedAt, missing } = repository;
        stood.set(repository.id, { revision, isMirrored, confirmedAt, missing });
      }
      if (bearers.length > 0) this.#kept.keep(name, () => bearers, { shown: [...stood.keys()], before: stood });
      return bearers;
    });
  }
}

function seenAmong(bearers: readonly Bearer[], sight: Sight): ShownRepository | null {
  const seen = bearers.find(({ isMirrored, repository }) => isMirrored && sees(sight, repository, "metadata"));
  return seen?.repository ?? null;
}

async function findNumbered(db: Database, ids: readonly number[]): Promise<(ShownRepository | null)[]> {
  const rows = await db.prepared<ShownRepository>(
    sql`select ${SHOWN_COLUMNS} ${mirroredWhere(sql`r.id = any(${sql.array([...new Set(ids)], "bigint")}::bigint[])`)}`,
  );
  const found = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => found.get(id) ?? null);
}

/** Upstream's confirmation of the rows that an answer shows. */
export interface Confirmation {
  /** The oldest confirmation of all that is shown, by our clock; null: a part was never confirmed. */
  confirmedAt: Date | null;
  /** The parts that upstream did not show then, as answers name them; null: none. */
  missing: string | null;
}

/** The confirmation of several repositories together; undefined: there are none. Pure. */
export function joinConfirmations(all: Iterable<Confirmation>): Confirmation | undefined {
  let joined: Confirmation | undefined;
  for (const { confirmedAt, missing } of all) {
    if (joined === undefined) joined = { confirmedAt, missing };
    else {
      const isOlder = joined.confirmedAt !== null && (confirmedAt === null || confirmedAt < joined.confirmedAt);
      if (isOlder) joined.confirmedAt = confirmedAt;
      joined.missing = joinParts([joined.missing, missing]);
    }
  }
  return joined;
}

function joinParts(lists: readonly (string | null)[]): string | null {
  const parts = new Set(lists.flatMap((list) => list?.split(", ") ?? []));
  return parts.size > 0 ? [...parts].join(", ") : null;
}

/** The confirmation of all repositories that are seen. */
export async function findOldestConfirmation(db: Database, sight: Sight): Promise<Confirmation> {
  const [row] = await db.prepared<{ oldest: Date | null; is_complete: boolean | null; missing: string[] | null }>(sql`
    select min(s.confirmed_at) as oldest, bool_and(s.confirmed_at is not null) as is_complete,
        array_agg(distinct s.parts_missing) filter (where s.parts_missing is not null) as missing
      ${mirroredWhere(visible(sql`r`, sight, "metadata"))}`);
  return { confirmedAt: row?.is_complete ? row.oldest : null, missing: joinParts(row?.missing ?? []) };
}

/** The confirmation of these repositories. Undefined: none of them is mirrored. */
export async function findConfirmation(db: Database, ids: readonly number[]): Promise<Confirmation | undefined> {
  return joinConfirmations(
    await db.prepared<Confirmation>(sql`
      select s.confirmed_at as "confirmedAt", s.parts_missing as missing from repository_syncs s
        where s.repository_id = any(${ids}::bigint[])`),
  );
}
