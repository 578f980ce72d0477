-- Oldest Tain that works beside this: 0.3.0
comment on column repository_syncs.mirrors is 'What is mirrored beside issues and pull requests: actions, checks, commits, deployments, refs, releases, threads.';
comment on column refresh_marks.kind is 'user, repository, label, milestone, issue, pull_request, issue_comment, review, review_comment, check_run, check_suite, status, release, deployment, deployment_status, workflow, workflow_run or workflow_job; mergeability: whether the open pull requests of a repository can be merged; checks: those of the heads of a repository; lists: the commits and files of its pull requests; releases, deployments, actions: the lists of these; refs: its branches and tags.';
alter table api_tokens drop constraint api_tokens_permissions_check;
alter table api_tokens add constraint api_tokens_permissions_check check
  (permissions <@ array['issues:read', 'issues:write', 'pull_requests:read', 'pull_requests:write', 'checks:read',
    'statuses:read', 'contents:read', 'deployments:read', 'actions:read', 'hooks:write']);

create table workflows (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  name text not null,
  path text not null,
  state text not null,
  created_at timestamptz,
  updated_at timestamptz,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  changed_at timestamptz,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision'),
  primary key (repository_id, id)
);
comment on table workflows is 'One row is one workflow of Actions: a file that says what is run, and when.';
comment on column workflows.repository_id is 'The repository''s id at upstream.';
comment on column workflows.id is 'Upstream''s id.';
comment on column workflows.node_id is 'Upstream''s global (GraphQL) id.';
comment on column workflows.name is 'Its name.';
comment on column workflows.path is 'Its file, such as .github/workflows/ci.yml.';
comment on column workflows.state is 'active, deleted, disabled_fork, disabled_inactivity or disabled_manually.';
comment on column workflows.created_at is 'When it was made, by upstream''s clock.';
comment on column workflows.updated_at is 'When it was last changed, by upstream''s clock.';
comment on column workflows.document is 'Everything upstream sent, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column workflows.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column workflows.seen_at is 'When the newest observation was made, by our clock.';
comment on column workflows.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column workflows.changed_at is 'When a value that is shown last became another. Null: not since the row was first stored.';
comment on column workflows.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column workflows.revision is 'Grows with every change that the mirror applies, over all tables.';

create table workflow_lists (
  repository_id bigint primary key,
  heard_at timestamptz,
  read_at timestamptz,
  is_half_stored boolean not null default false
);
comment on table workflow_lists is 'One row is the list of workflows of one repository: whether it is all here.';
comment on column workflow_lists.repository_id is 'The repository''s id at upstream.';
comment on column workflow_lists.heard_at is 'When a webhook last told of a workflow, by our clock. Null: never.';
comment on column workflow_lists.read_at is 'When the list was last read, by our clock. Null: it is not all here.';
comment on column workflow_lists.is_half_stored is 'Whether pages of it were stored, and what they lack was not looked for yet.';

create table workflow_runs (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  workflow_id bigint not null,
  check_suite_id bigint,
  name text,
  event text not null,
  head_sha text not null,
  head_branch text,
  run_number integer,
  run_attempt integer,
  status text,
  conclusion text,
  actor_id bigint,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  changed_at timestamptz,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision'),
  primary key (repository_id, id)
);
create index workflow_runs_created on workflow_runs (repository_id, created_at desc, id desc);
create index workflow_runs_workflow on workflow_runs (repository_id, workflow_id, created_at desc, id desc);
create index workflow_runs_suite on workflow_runs (repository_id, check_suite_id);
create index workflow_runs_head on workflow_runs (repository_id, head_sha);
create index workflow_runs_unfinished on workflow_runs (repository_id) where status <> 'completed';
comment on table workflow_runs is 'One row is one run of a workflow, with its latest attempt.';
comment on column workflow_runs.repository_id is 'The repository''s id at upstream.';
comment on column workflow_runs.id is 'Upstream''s id.';
comment on column workflow_runs.node_id is 'Upstream''s global (GraphQL) id.';
comment on column workflow_runs.workflow_id is 'The workflow.';
comment on column workflow_runs.check_suite_id is 'The check suite that sums it up.';
comment on column workflow_runs.name is 'The name of its workflow, or the one that the workflow gives its runs.';
comment on column workflow_runs.event is 'What started it, such as push.';
comment on column workflow_runs.head_sha is 'The commit.';
comment on column workflow_runs.head_branch is 'The branch. Null: it came from a fork.';
comment on column workflow_runs.run_number is 'The how manieth of its workflow it is.';
comment on column workflow_runs.run_attempt is 'The how manieth attempt of it this is.';
comment on column workflow_runs.status is 'queued, in_progress, completed, waiting, requested or pending.';
comment on column workflow_runs.conclusion is 'How it ended: success, failure, neutral, cancelled, skipped, timed_out, action_required, stale or startup_failure. Null: it has not ended.';
comment on column workflow_runs.actor_id is 'Who started it.';
comment on column workflow_runs.created_at is 'When it was first started, by upstream''s clock. Lists are in this order.';
comment on column workflow_runs.updated_at is 'When it was last changed, by upstream''s clock.';
comment on column workflow_runs.document is 'Everything upstream sent, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column workflow_runs.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column workflow_runs.seen_at is 'When the newest observation was made, by our clock.';
comment on column workflow_runs.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column workflow_runs.changed_at is 'When a value that is shown last became another. Null: not since the row was first stored.';
comment on column workflow_runs.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column workflow_runs.revision is 'Grows with every change that the mirror applies, over all tables.';

create table workflow_run_lists (
  repository_id bigint primary key,
  heard_at timestamptz,
  read_at timestamptz,
  walked_at timestamptz,
  is_half_stored boolean not null default false
);
comment on table workflow_run_lists is 'One row is the list of runs of one repository: whether it is all here.';
comment on column workflow_run_lists.repository_id is 'The repository''s id at upstream.';
comment on column workflow_run_lists.heard_at is 'When a webhook last told of a run, by our clock. Null: never.';
comment on column workflow_run_lists.read_at is 'When the list was last read up to what was known, by our clock. Null: it is not all here.';
comment on column workflow_run_lists.walked_at is 'When the list was last read to its end, by our clock. Null: never.';
comment on column workflow_run_lists.is_half_stored is 'Whether pages of it were stored, and what they lack was not looked for yet.';

create table workflow_jobs (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  run_id bigint not null,
  run_attempt integer,
  name text not null,
  status text not null,
  conclusion text,
  created_at timestamptz,
  started_at timestamptz,
  completed_at timestamptz,
  progress bigint not null,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  changed_at timestamptz,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision'),
  primary key (repository_id, id)
);
create index workflow_jobs_run on workflow_jobs (repository_id, run_id, id);
comment on table workflow_jobs is 'One row is one job of one attempt of a run. Its steps are in the document.';
comment on column workflow_jobs.repository_id is 'The repository''s id at upstream.';
comment on column workflow_jobs.id is 'Upstream''s id.';
comment on column workflow_jobs.node_id is 'Upstream''s global (GraphQL) id: that of its check run.';
comment on column workflow_jobs.run_id is 'The run.';
comment on column workflow_jobs.run_attempt is 'The attempt of the run that it belongs to.';
comment on column workflow_jobs.name is 'Its name.';
comment on column workflow_jobs.status is 'queued, in_progress, completed, waiting, requested or pending.';
comment on column workflow_jobs.conclusion is 'How it ended: success, failure, neutral, cancelled, skipped, timed_out or action_required. Null: it has not ended.';
comment on column workflow_jobs.created_at is 'When it was made, by upstream''s clock.';
comment on column workflow_jobs.started_at is 'When it began, by upstream''s clock.';
comment on column workflow_jobs.completed_at is 'When it ended, by upstream''s clock. Null: it has not ended.';
comment on column workflow_jobs.progress is 'Orders observations, since upstream sends no updated_at: how far the job has come, and within that since when.';
comment on column workflow_jobs.document is 'Everything upstream sent, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column workflow_jobs.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column workflow_jobs.seen_at is 'When the newest observation was made, by our clock.';
comment on column workflow_jobs.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column workflow_jobs.changed_at is 'When a value that is shown last became another. Null: not since the row was first stored.';
comment on column workflow_jobs.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column workflow_jobs.revision is 'Grows with every change that the mirror applies, over all tables.';

create table workflow_job_lists (
  repository_id bigint not null,
  parent_id bigint not null,
  read_at timestamptz,
  primary key (repository_id, parent_id)
);
comment on table workflow_job_lists is 'One row is the list of jobs of one run. Without a row, it was never here.';
comment on column workflow_job_lists.repository_id is 'The repository''s id at upstream.';
comment on column workflow_job_lists.parent_id is 'The run.';
comment on column workflow_job_lists.read_at is 'When the list was last all here, by our clock. Null: it is not.';
