import type pg from "pg";

const REPOSITORIES = 50;
const PEOPLE = 20_000;
/** A document of upstream's, of which no view shows anything, has about so many characters. */
const DOCUMENT_CHARACTERS = 900;

/** A number in [0, 1) that depends on a row's id alone. */
const chance = (seed: number, id = "id") => `((hashint8extended(${id}, ${seed}) & 1048575)::float8 / 1048576)`;
const person = (seed: number, id = "id") => `1 + floor(${PEOPLE} * ${chance(seed, id)} ^ 2)::bigint`;
const within = (days: number, seed: number, id = "id") => `${days} * interval '1 day' * ${chance(seed, id)} ^ 3`;
const observed = "document, seen_at, seen_by_read";
const OBSERVED = `json_build_object('text', repeat('d', ${DOCUMENT_CHARACTERS})), now(), true`;

/**
 * Fills an empty, migrated database: fifty repositories, five years old, and so many issues in all; a quarter of them
 * are pull requests. Each has two comments at the mean, a pull request one and a half reviews and two checks.
 */
export async function fillWithIssues(client: pg.Client, issues: number): Promise<void> {
  const each = Math.ceil(issues / REPOSITORIES);
  // Building an index at the end is several times quicker than keeping it. No question searches for words.
  const { rows: indexes } = await client.query<{ name: string; definition: string }>(
    `select indexname as name, indexdef as definition from pg_indexes
      where schemaname = 'public' and tablename = any($1) and indexname not in (select conname from pg_constraint)`,
    [LARGE],
  );
  for (const { name } of indexes) await client.query(`drop index ${name}`);
  for (const table of LARGE) await client.query(`alter table ${table} set unlogged`);
  for (const statement of statementsFor(each)) await client.query(statement);
  for (const { name, definition } of indexes) if (!name.endsWith("_search")) await client.query(definition);
  await client.query("vacuum (analyze)");
}

const LARGE = [
  ...["issues", "pull_requests", "issue_labels", "issue_comments", "pull_request_reviews", "check_runs"],
  ...["commit_statuses", "workflow_runs", "workflow_jobs"],
];

const statementsFor = (each: number): string[] => [
  `insert into users (id, login, type, ${observed})
    select id, 'person-' || id, case when id % 20 = 0 then 'Bot' else 'User' end, ${OBSERVED} from generate_series(1, ${PEOPLE}) id`,
  `insert into repositories (id, name, full_name, private, owner_id, html_url, ${observed})
    select id, 'r' || id, 'owner/r' || id, false, 1, 'https://example.test/owner/r' || id, ${OBSERVED} from generate_series(1, ${REPOSITORIES}) id`,
  `insert into repository_syncs (repository_id, state, added_at, confirmed_at)
    select id, 'live', now(), now() - id * interval '1 minute' from repositories`,
  `insert into labels (repository_id, id, name, ${observed})
    select r, l, 'label ' || l, ${OBSERVED} from generate_series(1, ${REPOSITORIES}) r, generate_series(1, 20) l`,
  `insert into milestones (repository_id, id, number, title, state, open_issues, closed_issues, ${observed})
    select r, m, m, 'milestone ' || m, case when m > 5 then 'open' else 'closed' end, 0, 0, ${OBSERVED}
      from generate_series(1, ${REPOSITORIES}) r, generate_series(1, 10) m`,
  `insert into issues (repository_id, number, id, is_pull_request, title, body, state, draft, user_id, author_association, comments,
      milestone_id, created_at, updated_at, closed_at, ${observed})
    select r, n, id, n % 4 = 0, 'What is wrong with ' || id, 'It fails.', case when is_open then 'open' else 'closed' end, n % 40 = 0,
        case when ${chance(1)} > 0.01 then ${person(2)} end, 'NONE', floor(5 * ${chance(3)})::integer,
        case when ${chance(4)} < 0.1 then 1 + n % 10 end, at, case when is_open then at + ${within(100, 5)} else closed end,
        case when not is_open then closed end, ${OBSERVED}
      from (select r, n, r * 10000000::bigint + n as id, date_trunc('second', now() - interval '1 hour' - (${each} - n) * interval '5 years' / ${each}) as at
        from generate_series(1, ${REPOSITORIES}) r, generate_series(1, ${each}) n) i
      cross join lateral (select ${chance(6)} < 0.12 as is_open,
        date_trunc('second', least(now(), at + interval '1 minute' + ${within(200, 7)})) as closed) c`,
  `insert into pull_requests (repository_id, number, id, title, body, state, draft, user_id, author_association, milestone_id, head_label, head_ref,
      head_sha, base_ref, created_at, updated_at, closed_at, merged_at, ${observed})
    select repository_id, number, id, title, body, state, draft, user_id, author_association, milestone_id, 'owner:b', 'b', md5(id::text), 'main',
        created_at, updated_at, closed_at, case when ${chance(8)} < 0.85 then closed_at end, document, seen_at, seen_by_read
      from issues where is_pull_request`,
  `insert into issue_labels (repository_id, label_id, number, state, is_pull_request, is_shown, created_at)
    select repository_id, 1 + (number * 7 + l * 3) % 20, number, state, is_pull_request, true, created_at
      from issues, generate_series(1, number % 3) l`,
  `insert into issue_comments (repository_id, issue_number, id, user_id, author_association, body, created_at, updated_at, ${observed})
    select repository_id, number, id, case when ${chance(9)} < 0.3 then author else ${person(10)} end, 'NONE', 'So it does.', at, at, ${OBSERVED}
      from (select repository_id, number, id * 10 + c as id, user_id as author, date_trunc('second', created_at + ${within(60, 11, "id + c")}) as at
        from issues, generate_series(1, comments) c) c`,
  `insert into pull_request_reviews (repository_id, pull_number, id, user_id, author_association, state, body, submitted_at, ${observed})
    select repository_id, number, id, case when ${chance(12)} < 0.2 then author else ${person(13)} end, 'NONE',
        (array['APPROVED', 'CHANGES_REQUESTED', 'COMMENTED', 'COMMENTED', 'DISMISSED'])[1 + floor(5 * ${chance(14)})::integer], 'I see.',
        date_trunc('second', created_at + ${within(20, 15)}), ${OBSERVED}
      from (select repository_id, number, id * 10 + v as id, user_id as author, created_at from pull_requests,
        generate_series(1, floor(4 * ${chance(16)})::integer) v) v`,
  `insert into check_runs (repository_id, id, head_sha, name, status, conclusion, progress, check_suite_id, ${observed})
    select repository_id, id * 10 + c, head_sha, 'check ' || c, 'completed',
        case when ${chance(17, "id * 10 + c")} < 0.1 then 'failure' else 'success' end, 1, id, ${OBSERVED}
      from pull_requests, generate_series(1, 2) c`,
  `insert into commit_statuses (repository_id, id, sha, context, state, created_at, updated_at, ${observed})
    select repository_id, id * 10 + c, head_sha, 'deploy', case when c < 2 then 'pending' when ${chance(18)} < 0.1 then 'error' else 'success' end,
        created_at + c * interval '1 minute', created_at + c * interval '1 minute', ${OBSERVED}
      from pull_requests, generate_series(1, 2) c where state = 'open'`,
  `insert into workflows (repository_id, id, name, path, state, ${observed})
    select r, w, 'workflow ' || w, '.github/workflows/' || w || '.yml', 'active', ${OBSERVED}
      from generate_series(1, ${REPOSITORIES}) r, generate_series(1, 5) w`,
  `insert into workflow_runs (repository_id, id, workflow_id, name, event, head_sha, run_number, run_attempt, status, conclusion, created_at, updated_at, ${observed})
    select repository_id, id, 1 + number % 5, title, 'push', head_sha, number, 1, 'completed',
        case when ${chance(19)} < 0.1 then 'failure' when ${chance(19)} < 0.12 then 'timed_out' else 'success' end,
        created_at, created_at + interval '1 second' * round(3000 * ${chance(20)}), ${OBSERVED}
      from pull_requests`,
  `insert into workflow_jobs (repository_id, run_id, id, name, status, conclusion, progress, created_at, started_at, completed_at, ${observed})
    select repository_id, id, id * 10 + j, 'job ' || j, status, conclusion, 1, created_at,
        created_at + interval '1 second' * round(60 * ${chance(21, "id + j")}), updated_at, ${OBSERVED}
      from workflow_runs, generate_series(1, 2) j`,
  `insert into events (repository_id, guid, id, delivery_id, event, action, received_at, number, is_pull_request)
    select repository_id, id::text, id, gen_random_uuid(), 'issues', 'opened', created_at, number, false
      from issues where created_at > now() - interval '30 days'`,
  `update milestones m set open_issues = o.open, closed_issues = o.closed from (
      select repository_id, milestone_id, count(*) filter (where state = 'open') as open, count(*) filter (where state = 'closed') as closed
        from issues group by 1, 2) o
    where o.repository_id = m.repository_id and o.milestone_id = m.id`,
];
