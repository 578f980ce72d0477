-- The role tain_reader may read what the mirror holds, and nothing else. It cannot log in: give it to roles that can.
--
--   create role dashboards login password '…' in role tain_reader;
--   alter role dashboards set default_transaction_read_only = on;
--   alter role dashboards set statement_timeout = '60s';
--
-- Each migration runs this file again. A new table is unreadable until it names it, but for the tables of resources and
-- of their lists.

do $$
begin
  if not exists (select from pg_roles where rolname = 'tain_reader') then
    create role tain_reader nologin;
  end if;
exception
  when duplicate_object or unique_violation then null; -- Roles belong to the server: another database's migration was quicker.
end
$$;

grant usage on schema public to tain_reader;

-- Who may name a table can lock it, whatever else they may not: `prepare` and `create trigger` lock before they ask for
-- rights, and two sessions stop all writers so. Temporary tables fill the disk. Our roles are granted what they need by
-- name; a role of somebody else's that needs it is, too. Where this user owns neither, nothing changes.
do $$
begin
  if (select pg_has_role(current_user, nspowner, 'usage') from pg_namespace where nspname = 'public') then
    revoke usage on schema public from public;
  end if;
  if (select pg_has_role(current_user, datdba, 'usage') from pg_database where datname = current_database()) then
    execute format('revoke temporary on database %I from public', current_database());
  end if;
end
$$;

-- What upstream showed.
grant select on
  former_names, issue_transfers, issue_labels, issue_assignees, checked_commits,
  pull_request_commits, pull_request_files, pull_request_threads, commits, listed_people, refs
to tain_reader;
do $$
begin
  execute format('grant select on %s to tain_reader', (
    select string_agg(t.oid::regclass::text, ', ') from pg_class t
      where t.relnamespace = 'public'::regnamespace and t.relkind in ('r', 'p') and t.relname <> 'repositories'
        and (t.relname like '%\_lists' or exists (
          select from pg_attribute a where a.attrelid = t.oid and a.attname = 'key_stamps' and not a.attisdropped))));
end
$$;

-- How the mirror stands.
grant select on origin, schema_migrations, selections, repository_syncs, backfill_phases, refresh_marks, account_names, shapes,
  audits, audit_pages, sweeps, hook_checks, hook_subscriptions, upkeep, exclusive_work, problems, graphql_sizes, upstream_lacks, installations,
  installation_repositories, revisions, eras to tain_reader;

-- Two tables without the column that is nobody else's: repositories.detail may hold a token that opens upstream
-- (temp_clone_token), and deliveries.payload holds whole webhooks, what is not mirrored included.
do $$
declare
  part record;
begin
  for part in
    select table_name, string_agg(quote_ident(column_name), ', ') as names from information_schema.columns
    where table_schema = 'public' and (table_name, column_name) not in (('repositories', 'detail'), ('deliveries', 'payload'))
      and table_name in ('repositories', 'deliveries')
    group by table_name
  loop
    execute format('grant select (%s) on %I to tain_reader', part.names, part.table_name);
  end loop;
end
$$;

-- The views for readers, of all repositories.
grant usage on schema tain_v1 to tain_reader;
grant select on all tables in schema tain_v1 to tain_reader;

-- And for roles that may read some repositories only, which the views tell them apart by.
do $$
declare
  names text := (select string_agg(distinct quote_ident(o.rolname), ', ') from reader_repositories g join pg_roles o on o.rolname = g.role);
begin
  if names is not null then
    execute format('grant usage on schema tain_v1 to %s', names);
    execute format('grant select on all tables in schema tain_v1 to %s', names);
  end if;
end
$$;

-- Not granted:
-- turns, listeners: whoever can lock them may hold up the mirror.
-- reader_repositories: who may read what.
-- api_tokens: the hashes of our own tokens.
-- validators, token_owners: fingerprints of upstream's tokens.
-- writes: which caller did what, with the fingerprints of callers' tokens.
-- audit_log: who did what, from which address.
-- activity: how much callers ask, for the operator's page.
-- found_changes: what an event may still be made of.
-- targets and what is sent to them: addresses often hold a key, and targets have secrets.
