import { openDatabase } from "../db/database.ts";
import { sql } from "../db/sql.ts";
import { renderDocuments } from "../src/mirror/render/rendering.ts";
import { SharedRows } from "../src/mirror/render/shared-rows.ts";
import { openCorpus } from "./corpus.ts";
import { prepareReadyIssues } from "./corpus-web.ts";
import { READ_SIZE } from "./list.ts";
import { type Benchmark, comparison } from "./measure.ts";

/** This many comments are rendered to learn how long they are. */
const SAMPLED = 5_000;

export const benchmark: Benchmark = {
  about:
    "bytes in Postgres for an issue with its labels, comments, people and indexes, against their JSON as it is served",
  async run() {
    const corpus = await openCorpus(READ_SIZE);
    await prepareReadyIssues(corpus);
    const db = openDatabase(corpus.database.url, { maxConnections: 1, applicationName: "bench disk" });
    try {
      const tables = await db.query<{ name: string; bytes: number }>(sql`
        select relname as name, pg_total_relation_size(oid)::float8 as bytes from pg_class
          where oid = any(${["issues", "issue_labels", "issue_assignees", "issue_comments", "labels", "milestones", "users", "shapes"]}::regclass[])`);
      const served = await db.query<{ issues: number; bytes: number; comments: number }>(sql`
        select count(*)::float8 as issues, sum(octet_length(json))::float8 as bytes,
          (select count(*)::float8 from issue_comments) as comments from ready_issues`);
      const sample = await db.query<{ r: string; document: string; body: string | null }>(sql`
        select repository_id as r, document::text as document, body from issue_comments
          order by hashint8(id) limit ${SAMPLED}`);
      const texts = await renderDocuments(
        new SharedRows(db),
        sample.map(({ r, document, body }) => ({ repositoryId: Number(r), document, body })),
        { api: "https://mirror.example" },
      );
      const { issues = 0, bytes = 0, comments = 0 } = served[0] ?? {};
      const commentBytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ""), 0) / texts.length;
      const stored = tables.reduce((sum, table) => sum + table.bytes, 0);
      const json = bytes + comments * commentBytes;
      return {
        ...comparison([[stored / issues, json / issues]], { unit: "bytes/issue", goal: { atMost: 0.8 } }),
        notes: Object.fromEntries(tables.map((table) => [table.name, Math.round(table.bytes / issues)])),
      };
    } finally {
      await db.close();
    }
  },
};
