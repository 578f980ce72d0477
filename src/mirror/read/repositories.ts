import type { Database } from "../../../db/database.ts";
import { COMPARED_REVISION, PEOPLE } from "../../../db/revisions.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { among, type SQL, sql } from "../../../db/sql.ts";
import type { MirrorPart } from "../../config/parts.ts";
import type { Right } from "../../kinds/contract/rights.ts";
import { repositorySyncs } from "../../schema.ts";
import { Gather } from "../../work/gather.ts";
import { Kept, type Reading, type RepositoryVersion } from "../unchanged/unchanged.ts";

/** Private repositories, by id. */
type Ids = "all" | readonly number[];

/**
 * The private repositories in which a caller has each right. Every caller sees all of a public one, as upstream shows
 * it to callers without a token. It is not known on which routes upstream refuses a public repository to a token
 * without the permission.
 */
export type AccessScope = Readonly<Record<Right, Ids>>;

/** A repository that is mirrored and exists, with the values that requests below it need. */
export interface ShownRepository {
  id: number;
  nodeId: string | null;
  name: string;
  fullName: string;
  htmlUrl: string | null;
  ownerId: number | null;
  isPrivate: boolean;
  hasIssues: boolean;
  updatedAt: Date | null;
  /** When upstream last confirmed the mirror's copy, by our clock; null: not since the first copy. */
  confirmedAt: Date | null;
  /** The parts that upstream did not show then, as answers name them; null: none. */
  missing: string | null;
  /** The parts that are mirrored beside issues and pull requests. */
  mirrors: readonly MirrorPart[];
}

export interface RepositoryDocument extends ShownRepository {
  document: string;
  detail: string | null;
}

/** How a path names a repository: by its name, or by its id. Both are null for an id that no repository can have. */
export interface RepositoryName {
  fullName: string | null;
  id: number | null;
}

/** Whether the caller has the right in this repository. */
export function sees(
  access: AccessScope,
  { id, isPrivate }: { id: number; isPrivate: boolean },
  right: Right,
): boolean {
  const ids = access[right];
  return !isPrivate || ids === "all" || ids.includes(id);
}

/** Whether the caller has the right wherever they see the repository. */
export function hasWhereSeen(access: AccessScope, right: Right): boolean {
  return access[right] === access.metadata;
}

/** The condition under which the caller has the right in the repository `alias`. */
export function visible(alias: SQL, access: AccessScope, right: Right): SQL {
  const ids = access[right];
  if (ids === "all") return sql`true`;
  if (ids.length === 0) return sql`not ${alias}.private`;
  return sql`(not ${alias}.private or ${alias}.id = any(${ids}::bigint[]))`;
}

/** The condition under which the caller sees `issue`, which may be a pull request, in the repository `alias`. */
export function visibleIssue(alias: SQL, issue: SQL, access: AccessScope): SQL {
  const asIssue = visible(alias, access, "issues");
  if (access.issues === access.pulls) return asIssue;
  return sql`case when ${issue}.is_pull_request then ${visible(alias, access, "pulls")} else ${asIssue} end`;
}

/** A `ShownRepository`, of a repository `r` and its row `s` of `repository_syncs`. */
export const SHOWN_COLUMNS = sql`r.id, r.node_id as "nodeId", r.name, r.full_name as "fullName",
  r.html_url as "htmlUrl", r.owner_id as "ownerId", r.private as "isPrivate",
  r.has_issues is not false as "hasIssues", greatest(r.updated_at, r.changed_at) as "updatedAt", s.confirmed_at as "confirmedAt",
  s.parts_missing as missing,
  coalesce(s.mirrors, '{}') as mirrors`;

/** Repositories `r` that are mirrored and exist. */
export const MIRRORED_REPOSITORIES = {
  tables: sql`repositories r join repository_syncs s on s.repository_id = r.id and ${MIRRORED}`,
  isMirrored: sql`r.deleted_at is null`,
};

/** The mirrored repositories `r` that meet the conditions. */
export function mirroredWhere(...conditions: readonly SQL[]): SQL {
  const { tables, isMirrored } = MIRRORED_REPOSITORIES;
  return sql`from ${tables} where ${sql.and([isMirrored, ...conditions])}`;
}

/** Enough for 10,000 names, roughly. */
const MAX_NAME_BYTES = 10 * 1024 * 1024;
const BYTES_PER_REPOSITORY = 500;

/** A row with this name. Two rows can have one name for a moment; the newer observation tells which one has it now. */
interface Bearer {
  repository: ShownRepository;
  isMirrored: boolean;
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
  async named(fullName: string, access: AccessScope): Promise<ShownRepository | null> {
    return seenAmong(await this.#named.ask(fullName.toLowerCase()), access);
  }

  /** The same, from memory if nothing has changed. */
  async namedOrKept(fullName: string, access: AccessScope, reading: Reading): Promise<ShownRepository | null> {
    const recalled = this.#kept.recall(fullName.toLowerCase());
    const found = recalled && seenAmong(recalled.value, access);
    if (!found) return this.named(fullName, access);
    const now = await reading.now([PEOPLE, ...recalled.basis.shown]);
    // A repository that takes over the name changes a revision too.
    if (!this.#kept.stands(recalled, now)) return this.named(fullName, access);
    const { confirmedAt = null, missing = null } = now.get(found.id) ?? {};
    return { ...found, confirmedAt, missing };
  }

  async byId(id: number, access: AccessScope): Promise<ShownRepository | null> {
    const found = await this.#numbered.ask(id);
    return found && sees(access, found, "metadata") ? found : null;
  }

  /** @param reading for a name that may be found in memory */
  async at({ fullName, id }: RepositoryName, access: AccessScope, reading?: Reading): Promise<ShownRepository | null> {
    if (fullName === null) return id === null ? null : this.byId(id, access);
    return reading ? this.namedOrKept(fullName, access, reading) : this.named(fullName, access);
  }

  async #findNamed(db: Database, names: readonly string[]): Promise<(readonly Bearer[])[]> {
    const asked = [...new Set(names)];
    const rows = await db.prepared<ShownRepository & { asked: string; mirrored: boolean; revision: string | null }>(
      sql`select x.name as asked, ${SHOWN_COLUMNS}, s.state is not null and ${MIRRORED} as mirrored, ${COMPARED_REVISION} as revision
        from unnest(${sql.array(asked, "text")}) as x(name)
        join repositories r on folded(r.full_name) = x.name and r.deleted_at is null
        left join repository_syncs s on s.repository_id = r.id left join revisions v on v.repository_id = r.id
        order by s.state = 'paused', r.seen_at desc`,
    );
    const found = Map.groupBy(rows, (row) => row.asked);
    return names.map((name) => {
      const bearers: Bearer[] = [];
      // The statement that reads the rows also reads these versions, so no change can come between.
      const stood = new Map<number, RepositoryVersion>();
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

function seenAmong(bearers: readonly Bearer[], access: AccessScope): ShownRepository | null {
  // Whoever had the name before is not shown in place of one that the caller does not see.
  const holder = bearers.find(({ isMirrored }) => isMirrored);
  return holder && sees(access, holder.repository, "metadata") ? holder.repository : null;
}

async function findNumbered(db: Database, ids: readonly number[]): Promise<(ShownRepository | null)[]> {
  const rows = await db.prepared<ShownRepository>(
    sql`select ${SHOWN_COLUMNS} ${mirroredWhere(sql`r.id = any(${sql.array([...new Set(ids)], "bigint")}::bigint[])`)}`,
  );
  const found = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => found.get(id) ?? null);
}

/** The repositories that had these names before they were renamed or transferred, by the names in lower case. */
export async function findRenamedRepositories(
  db: Database,
  fullNames: readonly string[],
  access: AccessScope,
): Promise<ReadonlyMap<string, ShownRepository>> {
  const names = fullNames.map((name) => name.toLowerCase());
  const { tables, isMirrored } = MIRRORED_REPOSITORIES;
  const rows = await db.prepared<ShownRepository & { asked: string }>(sql`
    select distinct on (f.full_name) f.full_name as asked, ${SHOWN_COLUMNS}
      from former_names f join (${tables}) on r.id = f.repository_id
      where f.full_name = any(${sql.array(names, "text")}::text[]) and ${isMirrored}
        and ${visible(sql`r`, access, "metadata")}
        -- The redirect ends when another repository takes the name.
        and not exists (select from repositories o join repository_syncs t on t.repository_id = o.id
          where folded(o.full_name) = f.full_name and o.deleted_at is null and t.state in ('live', 'backfilling'))
      order by f.full_name, r.seen_at desc`);
  return new Map(rows.map(({ asked, ...repository }) => [asked, repository]));
}

export async function findRepositoryDocument(db: Database, id: number): Promise<RepositoryDocument | null> {
  const [repository] = await db.prepared<RepositoryDocument>(sql`
    select ${SHOWN_COLUMNS}, r.document::text, r.detail::text from repositories r
      left join repository_syncs s on s.repository_id = r.id where r.id = ${id}`);
  return repository ?? null;
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
export async function findOldestConfirmation(db: Database, access: AccessScope): Promise<Confirmation> {
  const [row] = await db.prepared<{ oldest: Date | null; is_complete: boolean | null; missing: string[] | null }>(sql`
    select min(s.confirmed_at) as oldest, bool_and(s.confirmed_at is not null) as is_complete,
        array_agg(distinct s.parts_missing) filter (where s.parts_missing is not null) as missing
      ${mirroredWhere(visible(sql`r`, access, "metadata"))}`);
  return { confirmedAt: row?.is_complete ? row.oldest : null, missing: joinParts(row?.missing ?? []) };
}

/** The confirmation of these repositories. Undefined: none of them is mirrored. */
export async function findConfirmation(db: Database, ids: readonly number[]): Promise<Confirmation | undefined> {
  const { repositoryId, confirmedAt, partsMissing: missing } = repositorySyncs;
  const found = db.select({ confirmedAt, missing }).from(repositorySyncs).where(among(repositoryId, ids));
  return joinConfirmations(await found.prepare().execute());
}
