-- Oldest Tain that works beside this: 0.3.0
comment on column repository_syncs.mirrors is 'What is mirrored beside issues and pull requests: checks, commits, deployments, refs, releases, threads.';
comment on column refresh_marks.kind is 'user, repository, label, milestone, issue, pull_request, issue_comment, review, review_comment, check_run, check_suite, status, release, deployment or deployment_status; mergeability: whether the open pull requests of a repository can be merged; checks: those of the heads of a repository; lists: the commits and files of its pull requests; releases, deployments: the lists of these; refs: its branches and tags.';
alter table api_tokens drop constraint api_tokens_permissions_check;
alter table api_tokens add constraint api_tokens_permissions_check check
  (permissions <@ array['issues:read', 'issues:write', 'pull_requests:read', 'pull_requests:write', 'checks:read',
    'statuses:read', 'contents:read', 'deployments:read', 'hooks:write']);

create table deployments (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  sha text not null,
  ref text not null,
  task text not null,
  environment text not null,
  description text,
  creator_id bigint,
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
create index deployments_created on deployments (repository_id, created_at desc, id desc);
comment on table deployments is 'One row is one deployment of a commit to an environment.';
comment on column deployments.repository_id is 'The repository''s id at upstream.';
comment on column deployments.id is 'Upstream''s id.';
comment on column deployments.node_id is 'Upstream''s global (GraphQL) id.';
comment on column deployments.sha is 'The commit that is deployed.';
comment on column deployments.ref is 'The branch, tag or commit that was asked for.';
comment on column deployments.task is 'What is done, such as deploy.';
comment on column deployments.environment is 'Where to. A status may have named another environment since.';
comment on column deployments.description is 'What its maker wrote of it.';
comment on column deployments.creator_id is 'Who made it.';
comment on column deployments.created_at is 'When it was made, by upstream''s clock. Lists are in this order.';
comment on column deployments.updated_at is 'When it last got a status, by upstream''s clock.';
comment on column deployments.document is 'Everything upstream sent, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column deployments.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column deployments.seen_at is 'When the newest observation was made, by our clock.';
comment on column deployments.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column deployments.changed_at is 'When a value that is shown last became another. Null: not since the row was first stored.';
comment on column deployments.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column deployments.revision is 'Grows with every change that the mirror applies, over all tables.';

create table deployment_lists (
  repository_id bigint primary key,
  heard_at timestamptz,
  read_at timestamptz,
  walked_at timestamptz,
  is_half_stored boolean not null default false
);
comment on table deployment_lists is 'One row is the list of deployments of one repository: whether it is all here.';
comment on column deployment_lists.repository_id is 'The repository''s id at upstream.';
comment on column deployment_lists.heard_at is 'When a webhook last told of a deployment, by our clock. Null: never.';
comment on column deployment_lists.read_at is 'When the list was last read up to what was known, by our clock. Null: it is not all here.';
comment on column deployment_lists.walked_at is 'When the list was last read to its end, by our clock. Null: never.';
comment on column deployment_lists.is_half_stored is 'Whether pages of it were stored, and what they lack was not looked for yet.';

create table deployment_statuses (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  deployment_id bigint not null,
  state text not null,
  environment text,
  description text,
  environment_url text,
  log_url text,
  creator_id bigint,
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
create index deployment_statuses_deployment on deployment_statuses (repository_id, deployment_id, id desc);
comment on table deployment_statuses is 'One row is one status of one deployment; the newest counts.';
comment on column deployment_statuses.repository_id is 'The repository''s id at upstream.';
comment on column deployment_statuses.id is 'Upstream''s id.';
comment on column deployment_statuses.node_id is 'Upstream''s global (GraphQL) id.';
comment on column deployment_statuses.deployment_id is 'The deployment.';
comment on column deployment_statuses.state is 'error, failure, inactive, in_progress, queued, pending or success.';
comment on column deployment_statuses.environment is 'The environment that it names.';
comment on column deployment_statuses.description is 'What its maker wrote of it.';
comment on column deployment_statuses.environment_url is 'Where what was deployed can be seen.';
comment on column deployment_statuses.log_url is 'Where the output can be read.';
comment on column deployment_statuses.creator_id is 'Who made it.';
comment on column deployment_statuses.created_at is 'When it was made, by upstream''s clock.';
comment on column deployment_statuses.updated_at is 'When it was last changed, by upstream''s clock.';
comment on column deployment_statuses.document is 'Everything upstream sent, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column deployment_statuses.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column deployment_statuses.seen_at is 'When the newest observation was made, by our clock.';
comment on column deployment_statuses.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column deployment_statuses.changed_at is 'When a value that is shown last became another. Null: not since the row was first stored.';
comment on column deployment_statuses.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column deployment_statuses.revision is 'Grows with every change that the mirror applies, over all tables.';

create table deployment_status_lists (
  repository_id bigint not null,
  parent_id bigint not null,
  read_at timestamptz,
  primary key (repository_id, parent_id)
);
comment on table deployment_status_lists is 'One row is the list of statuses of one deployment.';
comment on column deployment_status_lists.repository_id is 'The repository''s id at upstream.';
comment on column deployment_status_lists.parent_id is 'The deployment.';
comment on column deployment_status_lists.read_at is 'When the list was last all here, by our clock. Null: it is not.';
