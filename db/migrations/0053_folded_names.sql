-- Oldest Tain that works beside this: 0.2.0
-- Names are compared in any case of their letters. Postgres folds by its database's locale: "C" knows no letters beyond
-- ASCII, Turkish ones fold I to ı, and JavaScript differs from all. So both sides of a comparison are folded here, by
-- rules that no database chooses.
do $$
declare
  rules text := case
    -- Postgres 17 brings its own, which no update of a library changes. Those before have ICU, if they were built with it.
    when exists (select from pg_collation where collname = 'pg_c_utf8' and collencoding in (-1, pg_char_to_encoding(getdatabaseencoding()))) then 'pg_c_utf8'
    when exists (select from pg_collation where collname = 'und-x-icu') then 'und-x-icu'
    else 'C' end;
begin
  execute format('create function folded(text) returns text language sql immutable parallel safe return lower($1 collate pg_catalog.%I)', rules);
  execute format('create function folded(text[]) returns text[] language sql immutable parallel safe return array(select lower(n collate pg_catalog.%I) from unnest($1) n)', rules);
end $$;
comment on function folded(text) is 'A name as it is compared: in lower case, alike in every database.';
comment on function folded(text[]) is 'Names as they are compared: in lower case, alike in every database.';

create or replace function raise_revisions(touched bigint[], names text[]) returns void language plpgsql as $$
begin
  insert into revisions (repository_id, revision)
    select id, nextval('revision') from (
      select unnest(touched) as id union select r.id from repositories r where folded(r.full_name) = any(folded(names))
    ) t order by id
    on conflict (repository_id) do update set revision = excluded.revision;
end
$$;

-- The sizes that upstream bears are learnt of REST's lists, too.
comment on table graphql_sizes is 'One row is one GraphQL query or list of REST that was too heavy for upstream in a repository, and how much of it upstream can bear. Without a row all is asked for that may be.';
comment on column graphql_sizes.repository_id is 'Upstream''s id of the repository; 0 for a list of no repository.';
comment on column graphql_sizes.query is 'pull pages: details page by page; single pulls: the same of named pull requests; mergeability; list and a list''s path, such as list pulls/comments.';
comment on column graphql_sizes.size is 'How many pull requests or rows are asked for next.';

-- When what a row shows last changed, as far as the mirror saw: Last-Modified rests on it. Processes from before this
-- migration do not write it.
alter table repositories add column changed_at timestamptz;
alter table users add column changed_at timestamptz;
alter table labels add column changed_at timestamptz;
alter table milestones add column changed_at timestamptz;
alter table issues add column changed_at timestamptz;
alter table pull_requests add column changed_at timestamptz;
alter table issue_comments add column changed_at timestamptz;
alter table pull_request_reviews add column changed_at timestamptz;
alter table pull_request_review_comments add column changed_at timestamptz;
alter table check_runs add column changed_at timestamptz;
alter table check_suites add column changed_at timestamptz;
alter table releases add column changed_at timestamptz;
alter table commit_statuses add column changed_at timestamptz;
comment on column repositories.changed_at is 'When a value that the mirror shows last became another: by the row''s own updated_at if that moved, otherwise by our clock. Null: not since it was first stored.';
comment on column users.changed_at is 'When a value that the mirror shows last became another: by the row''s own updated_at if that moved, otherwise by our clock. Null: not since it was first stored.';
comment on column labels.changed_at is 'When a value that the mirror shows last became another: by the row''s own updated_at if that moved, otherwise by our clock. Null: not since it was first stored.';
comment on column milestones.changed_at is 'When a value that the mirror shows last became another: by the row''s own updated_at if that moved, otherwise by our clock. Null: not since it was first stored.';
comment on column issues.changed_at is 'When a value that the mirror shows last became another: by the row''s own updated_at if that moved, otherwise by our clock. Null: not since it was first stored.';
comment on column pull_requests.changed_at is 'When a value that the mirror shows last became another: by the row''s own updated_at if that moved, otherwise by our clock. Null: not since it was first stored.';
comment on column issue_comments.changed_at is 'When a value that the mirror shows last became another: by the row''s own updated_at if that moved, otherwise by our clock. Null: not since it was first stored.';
comment on column pull_request_reviews.changed_at is 'When a value that the mirror shows last became another: by the row''s own updated_at if that moved, otherwise by our clock. Null: not since it was first stored.';
comment on column pull_request_review_comments.changed_at is 'When a value that the mirror shows last became another: by the row''s own updated_at if that moved, otherwise by our clock. Null: not since it was first stored.';
comment on column check_runs.changed_at is 'When a value that the mirror shows last became another: by the row''s own updated_at if that moved, otherwise by our clock. Null: not since it was first stored.';
comment on column check_suites.changed_at is 'When a value that the mirror shows last became another: by the row''s own updated_at if that moved, otherwise by our clock. Null: not since it was first stored.';
comment on column releases.changed_at is 'When a value that the mirror shows last became another: by the row''s own updated_at if that moved, otherwise by our clock. Null: not since it was first stored.';
comment on column commit_statuses.changed_at is 'When a value that the mirror shows last became another: by the row''s own updated_at if that moved, otherwise by our clock. Null: not since it was first stored.';
