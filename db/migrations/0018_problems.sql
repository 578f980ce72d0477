-- Oldest Tain that works beside this: 0.2.0
-- What fails is left alone for a while, by each process alike. A process from before this migration asks on, and shows no words.
create table problems (
  task text not null,
  key text not null,
  repository_id bigint,
  cause text not null,
  problem text not null,
  failures integer not null,
  since timestamptz not null,
  failed_at timestamptz not null,
  next_at timestamptz not null,
  credentials text not null,
  primary key (task, key)
);
create index problems_repository on problems (repository_id);
create index problems_next on problems (task, next_at);

comment on table problems is 'One row is one thing that failed when it was last tried, and is left alone until next_at. A success takes the row away.';
comment on column problems.task is 'What is done: select, token, installation, backfill, catch-up, sweep, audit, refresh or hook.';
comment on column problems.key is 'What it is done to: a wish, a credential, an installation, a repository, a repository''s hook or a mark.';
comment on column problems.repository_id is 'Upstream''s id of the repository that it concerns; null: none, or several.';
comment on column problems.cause is 'absent: upstream does not show it; refused: upstream will not; unavailable: upstream failed; own: we did.';
comment on column problems.problem is 'What is wrong, in words.';
comment on column problems.failures is 'How often it failed in a row.';
comment on column problems.since is 'When the first of these began, by our clock.';
comment on column problems.failed_at is 'When the last of these ended, by our clock.';
comment on column problems.next_at is 'When it is tried again, by our clock.';
comment on column problems.credentials is 'A digest of the credentials that it failed with: with others it is tried at once.';

insert into problems (task, key, cause, problem, failures, since, failed_at, next_at, credentials)
  select 'select', pattern, 'absent', problem, 1, added_at, added_at, added_at, '' from selections where problem is not null;
-- A process of 0.2.0 goes on to write it.
comment on column selections.problem is 'Not read any more: see the table problems.';
alter table selections add column account_type text;
comment on column selections.account_type is 'User or Organization, of a wish `owner/*`: where its repositories are listed; null while upstream has not said.';

alter table hook_checks add column asked_at timestamptz;
comment on column hook_checks.asked_at is 'When upstream was last asked about it, by our clock, whatever came of it: the longest neglected comes first.';
