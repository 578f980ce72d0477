-- The role tain_web: a web process, which everybody can reach. It keeps deliveries and what it read or wrote at upstream. It
-- makes no tables, no tokens, and changes nothing of how the mirror follows its repositories. It cannot log in:
--
--   create role tain_web_1 login password '…' in role tain_web;
--
-- Each migration runs this file again.

do $$
begin
  if not exists (select from pg_roles where rolname = 'tain_web') then
    create role tain_web nologin;
  end if;
exception
  when duplicate_object or unique_violation then null; -- Roles belong to the server: another database's migration was quicker.
end
$$;

grant usage on schema public to tain_web;
revoke all on all tables in schema public from tain_web;
grant usage on sequence revision to tain_web;

-- What upstream showed: merged, never removed. Lists of an issue's labels and people are written anew.
grant select, insert, update on former_names, issue_transfers, shapes, revisions, refresh_marks, account_names to tain_web;
do $$
begin
  -- Resources are known by a column that each of their tables has.
  execute format('grant select, insert, update on %s to tain_web', (
    select string_agg(t.oid::regclass::text, ', ') from pg_class t join pg_attribute a on a.attrelid = t.oid
      where t.relnamespace = 'public'::regnamespace and t.relkind in ('r', 'p') and a.attname = 'key_stamps' and not a.attisdropped));
  execute format('grant select on %s to tain_web', (
    select string_agg(t.oid::regclass::text, ', ') from pg_class t
      where t.relnamespace = 'public'::regnamespace and t.relkind in ('r', 'p') and t.relname like '%\_lists'));
end
$$;
grant select, insert, update, delete on issue_labels, issue_assignees, validators, refs to tain_web;
-- What it only passed on is its own to keep, and nobody else's to read.
grant select, insert, update, delete on forwarded_answers to tain_web;

-- What it finds changed is noted, for workers to make events of.
grant select, insert, update on found_changes to tain_web;
-- It names a new history of the database when a replica was promoted.
grant select, insert, update on eras to tain_web;

-- It takes turns, and hears what is announced. Whoever can lock these may hold up the mirror.
grant select, insert, update on turns to tain_web;
grant select, insert, delete on listeners to tain_web;

-- How the mirror stands is for others to change.
grant select on
  checked_commits, pull_request_commits, pull_request_files, pull_request_threads, commits, listed_people,
  origin, schema_migrations, selections, repository_syncs, backfill_phases, audits, audit_pages, sweeps, hook_checks, hook_subscriptions, upkeep, exclusive_work,
  installations, installation_repositories, problems, graphql_sizes, upstream_lacks, token_owners
to tain_web;

-- After a write that it passed on, upstream answers until workers have read the list again.
grant update (told_at, read_at) on mirrored_lists to tain_web;

-- It keeps deliveries, and reads no webhook again.
grant insert on deliveries to tain_web;
grant select
    (id, hook_id, guid, event, action, repository_id, received_at, status, reason, attempts, settled_at, traceparent)
  on deliveries to tain_web;
grant update (status, reason, settled_at, traceparent) on deliveries to tain_web;

-- It knows a token by its hash, and cannot make one or give one more rights.
grant select on api_tokens to tain_web;
grant update (last_used_at) on api_tokens to tain_web;

-- It records what callers write, and takes nothing back.
grant insert on writes to tain_web;
grant update (ended_at, outcome, status, upstream_request_id) on writes to tain_web;
grant select (id) on writes to tain_web;

-- It enters acts in the audit log, and takes none back.
grant insert on audit_log to tain_web;
grant update (outcome, object) on audit_log to tain_web;
grant select (id, object) on audit_log to tain_web;

-- It adds what it has counted, and the operator's page shows it.
grant select, insert, update on activity to tain_web;

-- It registers targets and asks for what is to be sent to them. It sends nothing itself.
grant select, insert, update, delete on targets to tain_web;
grant select, delete on target_cursors to tain_web;
grant select, insert, delete on target_asks to tain_web;
-- Only who may change a row may lock it, and rows are locked before they are deleted.
grant update (held_until) on target_cursors, target_asks to tain_web;
grant select on target_deliveries, events, event_log to tain_web;
grant select on sequence event_place to tain_web;
grant execute on function sent_payload(bigint, bigint) to tain_web;
grant execute on function event_payloads(bigint[], bigint) to tain_web;
