import type { Queries } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import { type Fields, parseStored, textOf } from "../../json.ts";

/** How the rows of a kind hold what people wrote. */
interface WrittenRows {
  table: SQL;
  /** Names a row within its repository. */
  key: "number" | "id";
  /** The keys of a document that hold such texts. Each has a column of its name, unless the document has it. */
  texts: readonly string[];
  /** Whether only the document has the second of them. */
  isInDocument?: boolean;
}

const WRITTEN_ROWS = {
  issue: { table: sql`issues`, key: "number", texts: ["title", "body"] },
  pull_request: { table: sql`pull_requests`, key: "number", texts: ["title", "body"] },
  issue_comment: { table: sql`issue_comments`, key: "id", texts: ["body"] },
  review_comment: { table: sql`pull_request_review_comments`, key: "id", texts: ["body"] },
  review: { table: sql`pull_request_reviews`, key: "id", texts: ["body"] },
  release: { table: sql`releases`, key: "id", texts: ["name", "body"], isInDocument: true },
  label: { table: sql`labels`, key: "id", texts: ["name", "description"] },
  milestone: { table: sql`milestones`, key: "id", texts: ["title", "description"] },
} satisfies Readonly<Record<string, WrittenRows>>;

/** A kind of resource with texts that people wrote, and may take back. */
export type WrittenKind = keyof typeof WRITTEN_ROWS;

/** The keys of a document of this kind that hold such texts. */
export function textKeys(kind: WrittenKind): readonly string[] {
  return WRITTEN_ROWS[kind].texts;
}

/** A resource with such texts. `key` is the number of an issue or pull request, else the id. */
export interface WrittenText {
  repositoryId: number;
  kind: WrittenKind;
  key: number;
}

/** The texts by the keys of the document. "deleted": upstream shows the resource no more. */
export type PresentText = Fields | "deleted";

export function writtenName({ repositoryId, kind, key }: WrittenText): string {
  return `${repositoryId} ${kind} ${key}`;
}

interface WrittenRow extends WrittenText {
  isDeleted: boolean;
  first: string | null;
  second: string | null;
  document: string | null;
}

/** What the mirror has of these now, by `writtenName`. A resource that it does not hold is absent. */
export async function presentTexts(db: Queries, asked: readonly WrittenText[]): Promise<Map<string, PresentText>> {
  if (asked.length === 0) return new Map();
  const parts = [...Map.groupBy(asked, ({ kind }) => kind)].map(([kind, some]) => {
    const { table, key: keyColumn, texts, isInDocument = false }: WrittenRows = WRITTEN_ROWS[kind];
    const key = sql.identifier(keyColumn);
    const column = (name: string | undefined) => (name === undefined ? sql`null::text` : sql.identifier(name));
    const [repositories, keys] = [some.map(({ repositoryId }) => repositoryId), some.map((one) => one.key)];
    return sql`select ${kind}::text as kind, repository_id as "repositoryId", ${key} as key,
        deleted_at is not null as "isDeleted", ${column(texts[0])} as first,
        ${column(isInDocument ? undefined : texts[1])} as second, ${isInDocument ? sql`document` : sql`null::json`} as document
      from ${table} where (repository_id, ${key}) in (
        select * from unnest(${sql.array(repositories, "bigint")}::bigint[], ${sql.array(keys, "bigint")}::bigint[]))`;
  });
  const rows = await db.query<WrittenRow>(sql`
    select kind, "repositoryId", key, "isDeleted", first, second, document::text as document
      from (${sql.join(parts, " union all ")}) rows`);
  return new Map(rows.map((row) => [writtenName(row), row.isDeleted ? "deleted" : textsOf(row)]));
}

function textsOf({ kind, first, second, document }: WrittenRow): Fields {
  const [one = "", other] = WRITTEN_ROWS[kind].texts;
  const kept = document === null ? second : bodyIn(document);
  return { [one]: first, ...(other === undefined ? {} : { [other]: kept }) };
}

/** The body that stands in a stored document. A text that begins with a control character is stored in another form. */
function bodyIn(document: string): string | null {
  const body = textOf(parseStored<Fields>(document).body);
  return body !== null && body.charCodeAt(0) < 9 ? null : body;
}
