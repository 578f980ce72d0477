-- Oldest Tain that works beside this: 0.3.0
comment on column repository_syncs.mirrors is 'What is mirrored beside issues and pull requests: actions, checks, commits, deployments, issue-events, refs, releases, threads.';
comment on column refresh_marks.kind is 'user, repository, label, milestone, issue, pull_request, issue_comment, issue_event, review, review_comment, check_run, check_suite, status, release, deployment, deployment_status, workflow, workflow_run or workflow_job; mergeability: whether the open pull requests of a repository can be merged; checks: those of the heads of a repository; lists: the commits and files of its pull requests; releases, deployments, actions, issue-events: the lists of these; refs: its branches and tags.';

create table issue_events (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  issue_number integer not null,
  event text not null,
  actor_id bigint,
  subject_id bigint,
  label text,
  milestone text,
  title_from text,
  title_to text,
  commit_id text,
  created_at timestamptz not null,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  changed_at timestamptz,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision'),
  primary key (repository_id, id)
);
create index issue_events_issue on issue_events (repository_id, issue_number, created_at, id);
create index issue_events_created on issue_events (repository_id, created_at);
create index issue_events_actor on issue_events (actor_id, repository_id, issue_number);
comment on table issue_events is 'One row is one thing that happened to an issue or pull request, such as that it was closed. Rows never change.';
comment on column issue_events.repository_id is 'The repository''s id at upstream.';
comment on column issue_events.id is 'Upstream''s id.';
comment on column issue_events.node_id is 'Upstream''s global (GraphQL) id.';
comment on column issue_events.issue_number is 'The number of the issue or pull request.';
comment on column issue_events.event is 'What happened: closed, labeled, renamed …';
comment on column issue_events.actor_id is 'Who did it.';
comment on column issue_events.subject_id is 'To whom it was done: of assigned, unassigned, and requests of reviews.';
comment on column issue_events.label is 'Of labeled and unlabeled: the label''s name at that time.';
comment on column issue_events.milestone is 'Of milestoned and demilestoned: the milestone''s title at that time.';
comment on column issue_events.title_from is 'Of renamed: the title before.';
comment on column issue_events.title_to is 'Of renamed: the title after.';
comment on column issue_events.commit_id is 'Of referenced, merged, and closed by a commit: the commit.';
comment on column issue_events.created_at is 'When it happened, by upstream''s clock.';
comment on column issue_events.document is 'Everything upstream sent but the issue, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column issue_events.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column issue_events.seen_at is 'When the newest observation was made, by our clock.';
comment on column issue_events.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column issue_events.changed_at is 'When a value that is shown last became another. Null: not since the row was first stored.';
comment on column issue_events.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column issue_events.revision is 'Grows with every change that the mirror applies, over all tables.';

create table issue_event_lists (
  repository_id bigint primary key,
  read_at timestamptz,
  walked_at timestamptz,
  begins_at timestamptz,
  is_half_stored boolean not null default false
);
comment on table issue_event_lists is 'One row is the list of what happened in one repository: from when on it is here, and when it was read.';
comment on column issue_event_lists.repository_id is 'The repository''s id at upstream.';
comment on column issue_event_lists.read_at is 'When the list was last read up to what was known, by our clock. Null: it is not here.';
comment on column issue_event_lists.walked_at is 'When the list was last read to its end, by our clock. Null: never.';
comment on column issue_event_lists.begins_at is 'From when on all events are here, since upstream lists no older ones, by its clock. Null: from the beginning.';
comment on column issue_event_lists.is_half_stored is 'Whether pages of it were stored, and what they lack was not looked for yet.';

create view tain_v1.issue_events with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    e.issue_number as number,
    e.id,
    i.is_pull_request,
    e.event,
    u.login as actor,
    e.actor_id,
    a.login as subject,
    e.label,
    e.milestone,
    e.title_from,
    e.title_to,
    e.commit_id,
    e.created_at,
    l.read_at
  from shown_repositories r
  join issue_events e on e.repository_id = r.id and e.deleted_at is null
  join issues i on i.repository_id = e.repository_id and i.number = e.issue_number and i.deleted_at is null
  left join issue_event_lists l on l.repository_id = e.repository_id
  left join users u on u.id = e.actor_id
  left join users a on a.id = e.subject_id;
comment on view tain_v1.issue_events is 'One row is one thing that happened to an issue or pull request: who did what, and when. With MIRROR=issue-events.';
comment on column tain_v1.issue_events.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.issue_events.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.issue_events.number is 'The number of the issue or pull request.';
comment on column tain_v1.issue_events.id is 'Upstream''s id. A later event has a greater one.';
comment on column tain_v1.issue_events.is_pull_request is 'Whether it is a pull request.';
comment on column tain_v1.issue_events.event is 'What happened: closed, labeled, assigned, renamed, review_requested, merged …';
comment on column tain_v1.issue_events.actor is 'Who did it: the login. Null: the account is gone.';
comment on column tain_v1.issue_events.actor_id is 'Who did it: the account''s id.';
comment on column tain_v1.issue_events.subject is 'Of assigned, unassigned, and requests of reviews: to whom it was done, as a login.';
comment on column tain_v1.issue_events.label is 'Of labeled and unlabeled: the label''s name at that time.';
comment on column tain_v1.issue_events.milestone is 'Of milestoned and demilestoned: the milestone''s title at that time.';
comment on column tain_v1.issue_events.title_from is 'Of renamed: the title before.';
comment on column tain_v1.issue_events.title_to is 'Of renamed: the title after.';
comment on column tain_v1.issue_events.commit_id is 'Of referenced, merged, and closed by a commit: the commit.';
comment on column tain_v1.issue_events.created_at is 'When it happened, by upstream''s clock.';
comment on column tain_v1.issue_events.read_at is 'When the repository''s events were last read, by our clock: what happened later is missing.';
