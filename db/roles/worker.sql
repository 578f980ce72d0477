-- The role tain_worker: workers and the scheduler, which nobody can reach. It writes all but the schema, and what
-- callers were answered. It cannot log in:
--
--   create role tain_worker_1 login password '…' in role tain_worker;
--
-- Each migration runs this file again.

do $$
begin
  if not exists (select from pg_roles where rolname = 'tain_worker') then
    create role tain_worker nologin;
  end if;
exception
  when duplicate_object or unique_violation then null; -- Roles belong to the server: another database's migration was quicker.
end
$$;

grant usage on schema public to tain_worker;
revoke all on all tables in schema public from tain_worker;
grant usage on sequence revision, event_place to tain_worker;

grant select, insert, update, delete on
  former_names, issue_transfers, issue_labels, issue_assignees,
  checked_commits, pull_request_commits, pull_request_files, pull_request_threads, commits, listed_people, refs,
  shapes, revisions, refresh_marks, account_names, validators, exclusive_work,
  deliveries, selections, repository_syncs, backfill_phases, audits, audit_pages, sweeps, hook_checks, hook_subscriptions, upkeep,
  installations, installation_repositories, problems, graphql_sizes, upstream_lacks, token_owners,
  activity, events, event_log, found_changes, targets, target_cursors, target_asks, target_deliveries
to tain_worker;
grant select on origin, schema_migrations, eras, listeners to tain_worker;
grant select, insert, update on turns to tain_worker;
grant execute on function sent_payload(bigint, bigint) to tain_worker;

do $$
declare
  -- Resources are known by a column that each of their tables has.
  resources text := (
    select string_agg(t.oid::regclass::text, ', ') from pg_class t join pg_attribute a on a.attrelid = t.oid
      where t.relnamespace = 'public'::regnamespace and t.relkind in ('r', 'p') and a.attname = 'key_stamps' and not a.attisdropped);
  lists text := (
    select string_agg(t.oid::regclass::text, ', ') from pg_class t
      where t.relnamespace = 'public'::regnamespace and t.relkind in ('r', 'p') and t.relname like '%\_lists');
begin
  execute format('grant select, insert, update, delete on %s, %s to tain_worker', resources, lists);
  -- After a copy it has Postgres look at what it filled. Before 17 there is no such right, and autovacuum does it alone.
  if current_setting('server_version_num')::integer >= 170000 then
    execute format('grant maintain on %s, issue_labels, issue_assignees to tain_worker', resources);
  end if;
end
$$;

-- It forgets who may read a repository that it purges.
grant select, delete on reader_repositories to tain_worker;

-- It drops what is too old of what callers wrote, and changes none of it. An operator asks it for the record.
grant select, delete on writes to tain_worker;

-- It enters what an operator asks it for in the audit log, shows the log, and drops what is too old of it.
grant select, insert, delete on audit_log to tain_worker;
grant update (outcome, object) on audit_log to tain_worker;

-- For an operator it makes tokens and revokes them. It cannot read one, nor give one more rights.
grant insert on api_tokens to tain_worker;
grant select (id, user_id, can_write, permissions, created_at, last_used_at, repository_ids, owner_ids, hourly_limit, expires_at,
  revoked_at, name) on api_tokens to tain_worker;
grant update (revoked_at) on api_tokens to tain_worker;

-- Not granted: api_tokens.hash and forwarded_answers. No worker serves callers.

-- It reads no token, but for whether targets still have a maker who may register them.
grant execute on function lapsed_targets(timestamptz) to tain_worker;
