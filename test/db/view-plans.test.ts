/** How the views for people who query the mirror find what they hold. */
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectTo, openTestDatabase, type TestDatabase } from "../support/database.ts";

describe("conditions reach the indexes of the tables", () => {
  let large: pg.Client;
  let database: TestDatabase;

  beforeAll(async () => {
    database = await openTestDatabase();
    large = await connectTo(database.url);
    await large.query(FILL);
  });
  afterAll(async () => {
    await large?.end();
    await database?.drop();
  });

  test.each([
    ["issues", "repository = 'o/r7' and number = 9", "issues_pkey", "(number = 9)"],
    ["issues", "repository = 'o/r7' and updated_at > now() - interval '1 hour'", "issues_updated", "updated_at >"],
    [
      "issues",
      "repository_id = 7 and state = 'open' and created_at > now() - interval '1 hour'",
      "issues_open_created",
      "created_at >",
    ],
    ["issues", "author = 'u7'", "issues_by_user", "user_id ="],
    ["pull_requests", "repository = 'o/r7' and number = 9", "pull_requests_pkey", "(number = 9)"],
    [
      "pull_requests",
      "repository = 'o/r7' and updated_at > now() - interval '1 hour'",
      "pull_requests_updated",
      "updated_at >",
    ],
    ["comments", "repository = 'o/r7' and number = 9", "issue_comments_issue", "(issue_number = 9)"],
    [
      "comments",
      "repository = 'o/r7' and updated_at > now() - interval '1 hour'",
      "issue_comments_updated",
      "updated_at >",
    ],
    ["reviews", "repository = 'o/r7' and number = 9", "pull_request_reviews_pull", "(pull_number = 9)"],
    ["issues", "repository = 'o/r7'", "issue_comments_issue", "(issue_number = i.number)"],
    ["pull_requests", "repository = 'o/r7'", "pull_request_reviews_pull", "(pull_number = p.number)"],
    ["pull_requests", "repository = 'o/r7' and number = 9", "issues_user", "(user_id = p.user_id)"],
    ["checks", "repository = 'o/r7' and sha = 'sha 9'", "check_runs_head", "(head_sha = 'sha 9'"],
  ])("%s where %s", async (view, condition, index, served) => {
    const { rows } = await large.query(`explain (costs off) select * from tain_v1.${view} where ${condition}`);
    const lines = rows.map((row) => String(row["QUERY PLAN"]).trim());
    const scan = lines.findIndex((line) => line.includes(`Scan using ${index} `) || line.endsWith(`Scan on ${index}`));
    expect(scan, lines.join("\n")).toBeGreaterThanOrEqual(0);
    expect(lines.slice(scan + 1).find((line) => line.startsWith("Index Cond"))).toContain(served);
  });

  test.each([
    ["issues", "number, title, hours_to_close", "issue_comments"],
    ["pull_requests", "number, title, hours_to_merge", "pull_request_reviews"],
    ["pull_requests", "number, title, reviewed_at", "issues"],
    ["reviews", "number, state", "pull_requests"],
  ])("%s reads for %s nothing of %s", async (view, columns, table) => {
    const { rows } = await large.query(`explain (format json) select ${columns} from tain_v1.${view}`);
    expect(JSON.stringify(rows)).not.toContain(`"Relation Name":"${table}"`);
  });
});

/** Fifty repositories of 400 issues each, with a pull request, two comments, a review and a check run beside each. */
const FILL = `
  insert into repositories (id, name, full_name, private, document, seen_at, seen_by_read)
    select n, 'r' || n, 'o/r' || n, false, '{}', now(), true from generate_series(1, 50) n;
  insert into repository_syncs (repository_id, state, added_at) select n, 'live', now() from generate_series(1, 50) n;
  insert into users (id, login, document, seen_at, seen_by_read)
    select n, 'u' || n, '{}', now(), true from generate_series(1, 1000) n;
  create temporary table places as select r, n, now() - n * interval '1 hour' as at, (r * 400 + n) % 1000 as person
    from generate_series(1, 50) r, generate_series(1, 400) n;
  insert into issues (repository_id, number, id, is_pull_request, title, body, state, user_id, created_at, updated_at, document, seen_at, seen_by_read)
    select r, n, n, false, 'a title', 'a text', case when n % 9 = 0 then 'open' else 'closed' end, person, at, at, '{}', now(), true from places;
  insert into pull_requests (repository_id, number, id, title, state, user_id, created_at, updated_at, document, seen_at, seen_by_read)
    select r, n, n, 'a title', 'closed', person, at, at, '{}', now(), true from places;
  insert into issue_comments (repository_id, id, issue_number, user_id, body, created_at, updated_at, document, seen_at, seen_by_read)
    select r, n * 2 + twice, n, person, 'a text', at, at, '{}', now(), true from places, generate_series(0, 1) twice;
  insert into pull_request_reviews (repository_id, id, pull_number, user_id, state, submitted_at, document, seen_at, seen_by_read)
    select r, n, n, person, 'APPROVED', at, '{}', now(), true from places;
  insert into check_runs (repository_id, id, head_sha, name, status, progress, document, seen_at, seen_by_read)
    select r, n, 'sha ' || n, 'build', 'completed', 1, '{}', now(), true from places;
  analyze;
`;
