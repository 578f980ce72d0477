-- Oldest Tain that works beside this: 0.2.0
alter table repository_syncs add column mirrors text[] not null default '{}',
  add column checks_confirmed_at timestamptz;
alter table selections add column mirrors text[];
comment on column repository_syncs.mirrors is 'What is mirrored beside issues and pull requests: checks.';
comment on column repository_syncs.checks_confirmed_at is 'When upstream was last asked about the checks of all heads, by our clock. Null: never.';
comment on column selections.mirrors is 'What is mirrored of its repositories beside what MIRROR says. Null: nothing.';

create table check_runs (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  head_sha text not null,
  check_suite_id bigint,
  app_id bigint,
  name text not null,
  status text not null,
  conclusion text,
  started_at timestamptz,
  completed_at timestamptz,
  progress bigint not null,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision'),
  primary key (repository_id, id)
);
comment on table check_runs is 'One row is one check run: one job of one App on one commit.';
comment on column check_runs.repository_id is 'The repository''s id at upstream.';
comment on column check_runs.id is 'Upstream''s id.';
comment on column check_runs.node_id is 'Upstream''s global (GraphQL) id.';
comment on column check_runs.head_sha is 'The commit that it checks.';
comment on column check_runs.check_suite_id is 'The suite that it belongs to.';
comment on column check_runs.app_id is 'The App that made it.';
comment on column check_runs.name is 'The name; a rerun has the same.';
comment on column check_runs.status is 'queued, in_progress, completed; of Actions also waiting, requested and pending.';
comment on column check_runs.conclusion is 'success, failure, neutral, cancelled, skipped, timed_out, action_required or stale. Null: it is not completed.';
comment on column check_runs.started_at is 'When it began, as its App says.';
comment on column check_runs.completed_at is 'When it ended, as its App says.';
comment on column check_runs.progress is 'Orders observations, since upstream sends no updated_at: how far the run has come, and within that since when.';
comment on column check_runs.document is 'Everything upstream sent, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column check_runs.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column check_runs.seen_at is 'When the newest observation was made, by our clock.';
comment on column check_runs.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column check_runs.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column check_runs.revision is 'Grows with every change that the mirror applies, over all tables.';

create table check_suites (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  head_sha text not null,
  head_branch text,
  app_id bigint,
  status text,
  conclusion text,
  created_at timestamptz,
  updated_at timestamptz,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision'),
  primary key (repository_id, id)
);
comment on table check_suites is 'One row is one check suite: the check runs of one App for one push.';
comment on column check_suites.repository_id is 'The repository''s id at upstream.';
comment on column check_suites.id is 'Upstream''s id.';
comment on column check_suites.node_id is 'Upstream''s global (GraphQL) id.';
comment on column check_suites.head_sha is 'The commit that it checks.';
comment on column check_suites.head_branch is 'The branch that was pushed. Null: upstream does not say.';
comment on column check_suites.app_id is 'The App that made it.';
comment on column check_suites.status is 'As of check runs. Null: upstream does not say.';
comment on column check_suites.conclusion is 'As of check runs, and startup_failure. Null: it is not completed.';
comment on column check_suites.created_at is 'When it was made, by upstream''s clock.';
comment on column check_suites.updated_at is 'When it was last changed, by upstream''s clock.';
comment on column check_suites.document is 'Everything upstream sent, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column check_suites.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column check_suites.seen_at is 'When the newest observation was made, by our clock.';
comment on column check_suites.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column check_suites.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column check_suites.revision is 'Grows with every change that the mirror applies, over all tables.';

create table commit_statuses (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  sha text,
  context text not null,
  state text not null,
  description text,
  target_url text,
  creator_id bigint,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision'),
  primary key (repository_id, id)
);
comment on table commit_statuses is 'One row is one status that was said of one commit. None is ever changed: the newest of each context counts.';
comment on column commit_statuses.repository_id is 'The repository''s id at upstream.';
comment on column commit_statuses.id is 'Upstream''s id.';
comment on column commit_statuses.node_id is 'Upstream''s global (GraphQL) id.';
comment on column commit_statuses.sha is 'The commit that it is of.';
comment on column commit_statuses.context is 'What says it; case does not matter.';
comment on column commit_statuses.state is 'error, failure, pending or success.';
comment on column commit_statuses.description is 'A sentence about it.';
comment on column commit_statuses.target_url is 'Where there is more about it.';
comment on column commit_statuses.creator_id is 'Who said it.';
comment on column commit_statuses.created_at is 'When it was said, by upstream''s clock.';
comment on column commit_statuses.updated_at is 'The same; upstream never changes one.';
comment on column commit_statuses.document is 'Everything upstream sent, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column commit_statuses.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column commit_statuses.seen_at is 'When the newest observation was made, by our clock.';
comment on column commit_statuses.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column commit_statuses.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column commit_statuses.revision is 'Grows with every change that the mirror applies, over all tables.';

create index check_runs_head on check_runs (repository_id, head_sha);
create index check_suites_head on check_suites (repository_id, head_sha);
create index commit_statuses_head on commit_statuses (repository_id, sha);

create table checked_commits (
  repository_id bigint not null,
  sha text not null check (sha <> ''),
  is_default_head boolean not null default false,
  heard_at timestamptz not null,
  read_at timestamptz,
  suites_read_at timestamptz,
  primary key (repository_id, sha)
);
comment on table checked_commits is 'One row is one commit whose checks and statuses are followed: the head of an open pull request or of the default branch.';
comment on column checked_commits.repository_id is 'The repository''s id at upstream.';
comment on column checked_commits.sha is 'The commit''s hash.';
comment on column checked_commits.is_default_head is 'Whether it was the head of the default branch when upstream was last asked, and no push there has been heard of since.';
comment on column checked_commits.heard_at is 'When it was first heard of as a head, by our clock: replicas lag behind that moment.';
comment on column checked_commits.read_at is 'When all its check runs and statuses were last read or found to be as they are here, by our clock. Null: they are not all here.';
comment on column checked_commits.suites_read_at is 'The same of its check suites.';

comment on column refresh_marks.kind is 'user, repository, label, milestone, issue, pull_request, issue_comment, review, review_comment, check_run, check_suite or status; mergeability: whether the open pull requests of a repository can be merged; checks: those of the heads of a repository.';
comment on column refresh_marks.key is 'Upstream''s id, or the number for issues and pull requests; the repository''s id for mergeability and checks.';
