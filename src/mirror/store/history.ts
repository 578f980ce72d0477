import type { Transaction } from "../../../db/database.ts";
import { columnsOf } from "../../../db/schema/columns.ts";
import { sql } from "../../../db/sql.ts";
import { type Fields, rowsOf, textOf } from "../../json.ts";
import { commits } from "../../schema.ts";
import { commitColumns, listedRow } from "./lists.ts";
import { columnTable, typesOf } from "./rows.ts";

/**
 * The history of a repository's default branch: its newest commits, in upstream's order. A commit never changes, and
 * neither does what a commit's history holds. So the history is read for the commit that the branch points to, and counts
 * for that commit alone.
 */

/** Of the row `s` of `repository_syncs`: the history is mirrored. Branches say which commit it is of. */
export const HAS_HISTORY = sql`(s.mirrors @> array['commits', 'refs'])`;

/** A commit by its hash, with those before it. */
export interface Ancestry {
  sha: string;
  parents: readonly string[];
}

/** A commit of a page of the history, cut like a document. */
export interface ReadCommit extends Ancestry {
  fields: Fields;
}

/** Null: the row names no commit. */
export function readCommit(fields: Fields): ReadCommit | null {
  const sha = textOf(fields.sha);
  const parents = rowsOf(fields.parents).map((parent) => textOf(parent.sha));
  return sha === null || parents.includes(null)
    ? null
    : { sha, parents: parents.filter((parent) => parent !== null), fields };
}

/**
 * Whether the history of a new head goes on like the known one, behind what was read of it. Git goes on with the youngest of
 * the parents that it has not listed yet, and of those that are as young with the one that it met first. So two histories
 * go on alike where these parents are the same, and each is of another time.
 *
 * Answers what the new head adds, and these parents. Null: the two do not meet here, or the new one has lost commits.
 * @param known the beginning of the known history, at least as long as `read`
 * @param head the commit that it is of
 * @param isKnown whether the known history has the commit, at whatever place
 */
export function addedTo(
  { known, head, isKnown }: { known: readonly Ancestry[]; head: string; isKnown: (sha: string) => boolean },
  read: readonly ReadCommit[],
): { added: ReadCommit[]; next: string[] } | null {
  const listed = new Set(read.map(({ sha }) => sha));
  const end = known.findIndex(({ sha }) => !listed.has(sha));
  const passed = end === -1 ? known : known.slice(0, end);
  const before = new Set(passed.map(({ sha }) => sha));
  const added = read.filter(({ sha }) => !before.has(sha));
  if (added.some(({ sha }) => isKnown(sha))) return null;
  const next = passed.length === 0 ? new Set([head]) : parentsBehind(passed, before);
  return next.symmetricDifference(parentsBehind(read, listed)).size === 0 ? { added, next: [...next] } : null;
}

function parentsBehind(commits: readonly Ancestry[], listed: ReadonlySet<string>): Set<string> {
  return new Set(commits.flatMap(({ parents }) => parents)).difference(listed);
}

/** Stores commits at their places. Those that are there already move. */
export async function storeCommits(
  tx: Transaction,
  repositoryId: number,
  placed: readonly { commit: ReadCommit; position: number }[],
): Promise<void> {
  if (placed.length === 0) return;
  const { parents: _, detail: __, ...wanted } = columnsOf(commits);
  const rows = placed.map(({ commit: { parents, fields }, position }) => ({
    ...listedRow(wanted, fields, { ...commitColumns(fields), repository_id: repositoryId, position }),
    parents: parents.join(" "),
  }));
  const { table: x, columns } = columnTable({ ...typesOf(wanted), parents: "text" }, rows);
  const shown = columns.map((column) =>
    column === "parents" ? sql`string_to_array(x.parents, ' ')` : sql.identifier(`x.${column}`),
  );
  await tx.prepared(sql`
    insert into commits (${sql.join(columns.map(sql.identifier))}) select ${sql.join(shown)} from ${x}
      on conflict (repository_id, sha) do update set position = excluded.position, document = excluded.document`);
}
