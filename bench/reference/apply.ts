import pg from "pg";
import type { Fields, Json } from "../../src/json.ts";
import { observe, type Seen } from "../../src/mirror/store/observation.ts";

/**
 * The least that applying can do: the same rows, each by one prepared upsert that is committed by itself, one after
 * the other over one connection. No queue, no merge rule, no marks.
 */
export async function applyPlainly(
  databaseUrl: string,
  api: string,
): Promise<{ deliveries: number; rows: number; seconds: number }> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(
      "create table plain_rows (kind text, repository_id bigint, key bigint, updated_at bigint, document json, primary key (kind, repository_id, key))",
    );
    const { rows: deliveries } = await client.query<{ event: string; payload: Buffer }>(
      "select event, payload from deliveries where status = 'pending' order by received_at, id",
    );
    let rows = 0;
    const startedAt = performance.now();
    for (const { payload } of deliveries) {
      for (const { kind, repositoryId, key, stamp, fields } of rowsOf(JSON.parse(payload.toString("utf8")), api)) {
        await client.query({
          name: "upsert",
          text: `insert into plain_rows values ($1, $2, $3, $4, $5) on conflict (kind, repository_id, key)
            do update set updated_at = excluded.updated_at, document = excluded.document where plain_rows.updated_at <= excluded.updated_at`,
          values: [kind, repositoryId, key, stamp.updatedAt, JSON.stringify(fields)],
        });
        rows += 1;
      }
    }
    return { deliveries: deliveries.length, rows, seconds: (performance.now() - startedAt) / 1_000 };
  } finally {
    await client.end();
  }
}

const subjects = {
  issue: "issue",
  pull_request: "pull_request",
  label: "label",
  milestone: "milestone",
  comment: "issue_comment",
  review: "review",
} as const;

/** Every resource that the payload shows, each once. */
function rowsOf(payload: Fields, api: string): Seen[] {
  const repository = payload.repository as { id: number; full_name: string; html_url: string };
  const at = {
    api,
    repository: { id: repository.id, fullName: repository.full_name, htmlUrl: repository.html_url },
    seenAt: new Date(),
    read: false,
  };
  const seen = [...observe("repository", repository as unknown as Json, at).seen];
  for (const [key, kind] of Object.entries(subjects)) {
    const subject = payload[key] as Fields | undefined;
    if (typeof subject !== "object" || subject === null || typeof subject.id !== "number") continue;
    const isOnDiff = kind === "issue_comment" && subject.pull_request_url !== undefined;
    seen.push(...observe(isOnDiff ? "review_comment" : kind, subject, at).seen);
  }
  return [...new Map(seen.map((one) => [`${one.kind} ${one.repositoryId} ${one.key}`, one])).values()];
}
