import { sql } from "../../../db/sql.ts";
import { type RefName, refNameOf } from "../../mirror/store/refs.ts";
import type { ApiContext } from "../call.ts";
import { objectIn } from "./body-values.ts";

interface WriteBelow {
  repositoryId: number;
  method: string;
  /** The path behind the repository's name. */
  rest: string;
  body: string;
}

/**
 * The branches and tags that a write below a repository may make, move or delete. The answer does not name them, and
 * the push comes later.
 */
export async function refsMovedBy(
  { db }: Pick<ApiContext, "db">,
  { repositoryId, method, rest, body }: WriteBelow,
): Promise<RefName[]> {
  const given = objectIn(body);
  const named = (kind: RefName["kind"], name: unknown): RefName[] =>
    typeof name === "string" && name !== "" ? [{ kind, name }] : [];
  const [, first = "", of = ""] = /^\/([^/]+)(?:\/(.*))?$/s.exec(rest) ?? [];
  switch (first) {
    case "git": {
      const ref = method === "POST" && of === "refs" ? given.ref : of;
      return [refNameOf(String(ref)) ?? []].flat();
    }
    case "contents":
      return named("heads", given.branch ?? (await defaultBranch(db, repositoryId)));
    case "merges":
      return named("heads", given.base);
    case "merge-upstream":
      return named("heads", given.branch);
    case "branches":
      return [...named("heads", /^(.+)\/rename$/s.exec(of)?.[1]), ...named("heads", given.new_name)];
    case "releases":
      return await unknownTags(db, repositoryId, named("tags", given.tag_name));
    case "pulls": {
      const [, number] = /^(\d{1,9})\/(?:merge|update-branch)$/.exec(of) ?? [];
      return number === undefined ? [] : await refsOfPull(db, repositoryId, Number(number));
    }
    default:
      return [];
  }
}

async function defaultBranch(db: ApiContext["db"], repositoryId: number): Promise<string | null> {
  const [row] = await db.query<{ name: string | null }>(
    sql`select default_branch as name from repositories where id = ${repositoryId}`,
  );
  return row?.name ?? null;
}

/** The tags that do not exist here yet: a release may make its tag, and moves none. */
async function unknownTags(db: ApiContext["db"], repositoryId: number, tags: RefName[]): Promise<RefName[]> {
  const [tag] = tags;
  const known = tag
    ? await db.count(sql`select from refs f where f.repository_id = ${repositoryId} and f.kind = 'tags'
        and f.name = ${tag.name} and f.deleted_at is null and f.doubt is null`)
    : 0;
  return known > 0 ? [] : tags;
}

/** A merge moves the base, and may delete the head. */
export async function refsOfPull(db: ApiContext["db"], repositoryId: number, number: number): Promise<RefName[]> {
  const rows = await db.query<{ name: string | null }>(sql`
    select unnest(array[p.base_ref, case when p.head_repository_id = p.repository_id then p.head_ref end]) as name
      from pull_requests p where p.repository_id = ${repositoryId} and p.number = ${number}`);
  return rows.flatMap(({ name }) => (name === null ? [] : [{ kind: "heads" as const, name }]));
}
