-- Oldest Tain that works beside this: 0.1.0
create sequence revision;

create table shapes (
  id text primary key,
  keys text not null
);

create table users (
  id bigint primary key,
  node_id text,
  login text not null,
  type text,
  name text,
  avatar_url text,
  site_admin boolean,
  updated_at timestamptz,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision')
);

create table former_names (
  full_name text not null,
  repository_id bigint not null,
  primary key (full_name, repository_id)
);

create table repositories (
  id bigint primary key,
  node_id text,
  name text not null,
  full_name text not null,
  owner_id bigint,
  html_url text,
  private boolean not null,
  visibility text,
  description text,
  fork boolean,
  archived boolean,
  disabled boolean,
  has_issues boolean,
  default_branch text,
  language text,
  stargazers_count integer,
  forks_count integer,
  open_issues_count integer,
  size integer,
  created_at timestamptz,
  updated_at timestamptz,
  pushed_at timestamptz,
  detail json,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision')
);

create table labels (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  name text not null,
  color text,
  description text,
  "default" boolean,
  updated_at timestamptz,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision'),
  primary key (repository_id, id)
);

create table milestones (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  number integer not null,
  title text not null,
  description text,
  state text not null,
  creator_id bigint,
  open_issues integer,
  closed_issues integer,
  created_at timestamptz,
  updated_at timestamptz,
  due_on timestamptz,
  closed_at timestamptz,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision'),
  primary key (repository_id, id)
);

create table issue_assignees (
  repository_id bigint not null,
  user_id bigint not null,
  number integer not null,
  primary key (repository_id, user_id, number)
);

create table issue_labels (
  repository_id bigint not null,
  label_id bigint not null,
  number integer not null,
  primary key (repository_id, label_id, number)
);

create table issues (
  repository_id bigint not null,
  number integer not null,
  id bigint,
  node_id text,
  is_pull_request boolean not null,
  title text not null,
  body text,
  state text not null,
  state_reason text,
  locked boolean,
  active_lock_reason text,
  draft boolean,
  user_id bigint,
  author_association text,
  milestone_id bigint,
  comments integer,
  closed_by_id bigint,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  closed_at timestamptz,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision'),
  primary key (repository_id, number)
);

create table pull_requests (
  repository_id bigint not null,
  number integer not null,
  id bigint,
  node_id text,
  title text not null,
  body text,
  state text not null,
  locked boolean,
  draft boolean,
  user_id bigint,
  author_association text,
  milestone_id bigint,
  head_label text,
  head_ref text,
  head_sha text,
  head_repository_id bigint,
  base_ref text,
  base_sha text,
  merge_commit_sha text,
  merged boolean,
  merged_by_id bigint,
  mergeable boolean,
  mergeable_state text,
  comments integer,
  review_comments integer,
  commits integer,
  additions integer,
  deletions integer,
  changed_files integer,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  closed_at timestamptz,
  merged_at timestamptz,
  detail json,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision'),
  primary key (repository_id, number)
);

create table issue_comments (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  issue_number integer not null,
  user_id bigint,
  author_association text,
  body text,
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

create table pull_request_review_comments (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  pull_number integer not null,
  review_id bigint,
  in_reply_to_id bigint,
  user_id bigint,
  author_association text,
  path text,
  line integer,
  side text,
  commit_id text,
  body text,
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

create table pull_request_reviews (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  pull_number integer not null,
  user_id bigint,
  author_association text,
  state text not null,
  body text,
  commit_id text,
  submitted_at timestamptz,
  updated_at timestamptz,
  detail json,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision'),
  primary key (repository_id, id)
);

create table deliveries (
  id uuid primary key default uuidv7(),
  hook_id bigint not null,
  guid text not null,
  event text not null,
  action text,
  repository_id bigint,
  payload bytea not null,
  status text not null default 'pending',
  attempts integer not null default 0,
  reason text,
  received_at timestamptz not null,
  settled_at timestamptz,
  unique (hook_id, guid),
  constraint deliveries_status check (status in ('pending', 'applied', 'ignored', 'failed'))
);

create table backfill_phases (
  repository_id bigint not null,
  phase text not null,
  cursor text,
  pages integer not null default 0,
  resources integer not null default 0,
  expected_pages integer,
  started_at timestamptz,
  finished_at timestamptz,
  primary key (repository_id, phase)
);

create table repository_syncs (
  repository_id bigint primary key,
  state text not null,
  added_at timestamptz not null,
  backfilled_at timestamptz,
  issues_synced_at timestamptz,
  comments_synced_at timestamptz,
  review_comments_synced_at timestamptz,
  pulls_synced_at timestamptz,
  confirmed_at timestamptz,
  problem text,
  constraint repository_syncs_state check (state in ('backfilling', 'live', 'paused', 'gone'))
);

create table selections (
  pattern text primary key,
  added_at timestamptz not null,
  resolved_at timestamptz,
  problem text
);

create table refresh_marks (
  kind text not null,
  repository_id bigint not null,
  key bigint not null,
  asked_at timestamptz not null,
  not_before timestamptz not null,
  primary key (kind, repository_id, key)
);

create table validators (
  credential text not null,
  path text not null,
  etag text,
  last_modified text,
  next text,
  is_full boolean not null,
  seen_at timestamptz not null,
  primary key (credential, path)
);

create table api_tokens (
  hash text primary key,
  user_id bigint not null,
  can_write boolean not null,
  created_at timestamptz not null,
  last_used_at timestamptz,
  revoked_at timestamptz
);

create index users_login on users (lower(login));
create index users_node_id on users (node_id);
create index repositories_full_name on repositories (lower(full_name));
create index repositories_owner on repositories (owner_id);
create index repositories_node_id on repositories (node_id);
create index former_names_repository on former_names (repository_id);
create index labels_name on labels (repository_id, lower(name));
create index milestones_number on milestones (repository_id, number);

create index issues_id on issues (id);
create index issues_created on issues (repository_id, created_at, number);
create index issues_updated on issues (repository_id, updated_at, number);
create index issues_comments on issues (repository_id, comments, number);
create index issues_open_created on issues (repository_id, created_at, number) where state = 'open';
create index issues_user on issues (repository_id, user_id, created_at, number);
create index issues_milestone on issues (repository_id, milestone_id, created_at, number) where milestone_id is not null;
-- What lists count.
create index issues_shown on issues (repository_id, state) where id is not null and deleted_at is null and not is_pull_request;
create index issue_labels_number on issue_labels (repository_id, number);
create index issue_assignees_number on issue_assignees (repository_id, number);

create index pull_requests_id on pull_requests (id);
create index pull_requests_created on pull_requests (repository_id, created_at, number);
create index pull_requests_updated on pull_requests (repository_id, updated_at, number);
create index pull_requests_open_created on pull_requests (repository_id, created_at, number) where state = 'open';

create index pull_requests_shown on pull_requests (repository_id, state) where id is not null and deleted_at is null;

create index issue_comments_issue on issue_comments (repository_id, issue_number, id);
create index issue_comments_updated on issue_comments (repository_id, updated_at, id);
create index pull_request_reviews_pull on pull_request_reviews (repository_id, pull_number, id);
create index pull_request_review_comments_pull on pull_request_review_comments (repository_id, pull_number, id);
create index pull_request_review_comments_updated on pull_request_review_comments (repository_id, updated_at, id);

create index refresh_marks_not_before on refresh_marks (not_before);
create index deliveries_pending on deliveries (received_at) where status = 'pending';
create index deliveries_received on deliveries (received_at);

comment on table shapes is 'One row is one ordered set of keys in which upstream was seen to embed a shared resource in another.';
comment on column shapes.id is 'A hash of the keys.';
comment on column shapes.keys is 'The keys, joined by commas.';
comment on table users is 'One row is one account: a person, bot or organisation.';
comment on column users.id is 'Upstream''s id.';
comment on column users.node_id is 'Upstream''s global (GraphQL) id.';
comment on column users.login is 'The account''s name.';
comment on column users.type is 'User, Bot, Organization or Mannequin.';
comment on column users.name is 'The name.';
comment on column users.avatar_url is 'The picture.';
comment on column users.site_admin is 'Whether it is staff of upstream.';
comment on column users.updated_at is 'When it was last changed, by upstream''s clock; whole seconds, and not every change moves it.';
comment on column users.document is 'Everything upstream sent but the body, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0004 the column body, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column users.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column users.seen_at is 'When the newest observation was made, by our clock.';
comment on column users.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column users.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column users.revision is 'Grows with every change that the mirror applies, over all tables.';
comment on table former_names is 'One row is one full name, in lower case, that a repository no longer has.';
comment on column former_names.full_name is 'owner/name, in lower case.';
comment on column former_names.repository_id is 'The repository''s id at upstream.';
comment on table repositories is 'One row is one repository that upstream showed us: a mirrored one (see repository_syncs), or one met as the head of a pull request.';
comment on column repositories.id is 'Upstream''s id.';
comment on column repositories.node_id is 'Upstream''s global (GraphQL) id.';
comment on column repositories.name is 'The name.';
comment on column repositories.full_name is 'owner/name.';
comment on column repositories.owner_id is 'users.id of the owner.';
comment on column repositories.html_url is 'The page of the repository at upstream.';
comment on column repositories.private is 'Whether it is hidden from the public.';
comment on column repositories.visibility is 'public, private or internal.';
comment on column repositories.description is 'The description.';
comment on column repositories.fork is 'Whether it is a fork.';
comment on column repositories.archived is 'Whether it is archived.';
comment on column repositories.disabled is 'Whether upstream disabled it.';
comment on column repositories.has_issues is 'Whether issues are enabled.';
comment on column repositories.default_branch is 'The default branch.';
comment on column repositories.language is 'The main language.';
comment on column repositories.stargazers_count is 'How many stars.';
comment on column repositories.forks_count is 'How many forks.';
comment on column repositories.open_issues_count is 'Open issues and pull requests, by upstream''s count.';
comment on column repositories.size is 'Kilobytes, by upstream''s count.';
comment on column repositories.created_at is 'When it was created, by upstream''s clock.';
comment on column repositories.updated_at is 'When it was last changed, by upstream''s clock; whole seconds, and not every change moves it.';
comment on column repositories.pushed_at is 'The last push, by upstream''s clock.';
comment on column repositories.detail is 'Like document: the keys that upstream sends only for a single resource, not in lists.';
comment on column repositories.document is 'Everything upstream sent but the body, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0004 the column body, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column repositories.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column repositories.seen_at is 'When the newest observation was made, by our clock.';
comment on column repositories.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column repositories.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column repositories.revision is 'Grows with every change that the mirror applies, over all tables.';
comment on table labels is 'One row is one label of one repository.';
comment on column labels.repository_id is 'The repository''s id at upstream.';
comment on column labels.id is 'Upstream''s id.';
comment on column labels.node_id is 'Upstream''s global (GraphQL) id.';
comment on column labels.name is 'The name.';
comment on column labels.color is 'Six hex digits.';
comment on column labels.description is 'The description.';
comment on column labels."default" is 'Whether upstream made it for every new repository.';
comment on column labels.updated_at is 'When it was last changed, by upstream''s clock; whole seconds, and not every change moves it.';
comment on column labels.document is 'Everything upstream sent but the body, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0004 the column body, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column labels.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column labels.seen_at is 'When the newest observation was made, by our clock.';
comment on column labels.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column labels.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column labels.revision is 'Grows with every change that the mirror applies, over all tables.';
comment on table milestones is 'One row is one milestone of one repository.';
comment on column milestones.repository_id is 'The repository''s id at upstream.';
comment on column milestones.id is 'Upstream''s id.';
comment on column milestones.node_id is 'Upstream''s global (GraphQL) id.';
comment on column milestones.number is 'The number people use, counted per repository; issues and pull requests share the count.';
comment on column milestones.title is 'The title.';
comment on column milestones.description is 'The description.';
comment on column milestones.state is 'open or closed.';
comment on column milestones.creator_id is 'users.id of the creator.';
comment on column milestones.open_issues is 'Open issues and pull requests in it, by upstream''s count.';
comment on column milestones.closed_issues is 'Closed ones, by upstream''s count.';
comment on column milestones.created_at is 'When it was created, by upstream''s clock.';
comment on column milestones.updated_at is 'When it was last changed, by upstream''s clock; whole seconds, and not every change moves it.';
comment on column milestones.due_on is 'When it is due.';
comment on column milestones.closed_at is 'When it was closed, by upstream''s clock.';
comment on column milestones.document is 'Everything upstream sent but the body, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0004 the column body, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column milestones.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column milestones.seen_at is 'When the newest observation was made, by our clock.';
comment on column milestones.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column milestones.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column milestones.revision is 'Grows with every change that the mirror applies, over all tables.';
comment on table issue_assignees is 'One row says that an issue or pull request is assigned to a user.';
comment on column issue_assignees.repository_id is 'The repository''s id at upstream.';
comment on column issue_assignees.user_id is 'The author: users.id. Null for a deleted account.';
comment on column issue_assignees.number is 'The number people use, counted per repository; issues and pull requests share the count.';
comment on table issue_labels is 'One row says that an issue or pull request carries a label.';
comment on column issue_labels.repository_id is 'The repository''s id at upstream.';
comment on column issue_labels.label_id is 'labels.id in the same repository.';
comment on column issue_labels.number is 'The number people use, counted per repository; issues and pull requests share the count.';
comment on table issues is 'One row is one number of a repository: an issue, or the issue side of a pull request.';
comment on column issues.repository_id is 'The repository''s id at upstream.';
comment on column issues.number is 'The number people use, counted per repository; issues and pull requests share the count.';
comment on column issues.id is 'Upstream''s id of the issue. Null while only the pull request has been seen; such a row is not served as an issue.';
comment on column issues.node_id is 'Upstream''s global (GraphQL) id.';
comment on column issues.is_pull_request is 'True for the issue side of a pull request.';
comment on column issues.title is 'The title.';
comment on column issues.body is 'Markdown. NUL and lone surrogates, which Postgres cannot hold, read as U+FFFD here; the API serves them as they were.';
comment on column issues.state is 'open or closed.';
comment on column issues.state_reason is 'completed, not_planned, reopened or duplicate.';
comment on column issues.locked is 'Whether the conversation is locked.';
comment on column issues.active_lock_reason is 'off-topic, too heated, resolved or spam.';
comment on column issues.draft is 'Whether it is a draft pull request.';
comment on column issues.user_id is 'The author: users.id. Null for a deleted account.';
comment on column issues.author_association is 'How the author relates to the repository: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, FIRST_TIME_CONTRIBUTOR, FIRST_TIMER, MANNEQUIN, NONE.';
comment on column issues.milestone_id is 'milestones.id in the same repository.';
comment on column issues.comments is 'How many comments the conversation has, by upstream''s count.';
comment on column issues.closed_by_id is 'users.id of who closed it.';
comment on column issues.created_at is 'When it was created, by upstream''s clock.';
comment on column issues.updated_at is 'When it was last changed, by upstream''s clock; whole seconds, and not every change moves it.';
comment on column issues.closed_at is 'When it was closed, by upstream''s clock.';
comment on column issues.document is 'Everything upstream sent but the body, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0004 the column body, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column issues.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column issues.seen_at is 'When the newest observation was made, by our clock.';
comment on column issues.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column issues.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column issues.revision is 'Grows with every change that the mirror applies, over all tables.';
comment on table pull_requests is 'One row is one pull request; the issue side of it is the row of issues with the same number.';
comment on column pull_requests.repository_id is 'The repository''s id at upstream.';
comment on column pull_requests.number is 'The number people use, counted per repository; issues and pull requests share the count.';
comment on column pull_requests.id is 'Upstream''s id.';
comment on column pull_requests.node_id is 'Upstream''s global (GraphQL) id.';
comment on column pull_requests.title is 'The title.';
comment on column pull_requests.body is 'Markdown. NUL and lone surrogates, which Postgres cannot hold, read as U+FFFD here; the API serves them as they were.';
comment on column pull_requests.state is 'open or closed.';
comment on column pull_requests.locked is 'Whether the conversation is locked.';
comment on column pull_requests.draft is 'Whether it is a draft pull request.';
comment on column pull_requests.user_id is 'The author: users.id. Null for a deleted account.';
comment on column pull_requests.author_association is 'How the author relates to the repository: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, FIRST_TIME_CONTRIBUTOR, FIRST_TIMER, MANNEQUIN, NONE.';
comment on column pull_requests.milestone_id is 'milestones.id in the same repository.';
comment on column pull_requests.head_label is 'owner:branch of the head.';
comment on column pull_requests.head_ref is 'The head''s branch.';
comment on column pull_requests.head_sha is 'The head''s commit.';
comment on column pull_requests.head_repository_id is 'repositories.id of the head. Null when the fork is gone.';
comment on column pull_requests.base_ref is 'The base''s branch.';
comment on column pull_requests.base_sha is 'The base''s commit.';
comment on column pull_requests.merge_commit_sha is 'Before the merge the test merge, after it the merge.';
comment on column pull_requests.merged is 'Whether it was merged. Null: not known yet.';
comment on column pull_requests.merged_by_id is 'users.id of who merged it.';
comment on column pull_requests.mergeable is 'Whether it can be merged. Null: upstream has not worked it out.';
comment on column pull_requests.mergeable_state is 'clean, dirty, blocked, behind, unstable, draft, has_hooks or unknown.';
comment on column pull_requests.comments is 'How many comments the conversation has, by upstream''s count.';
comment on column pull_requests.review_comments is 'How many comments on the diff.';
comment on column pull_requests.commits is 'How many commits.';
comment on column pull_requests.additions is 'Lines added.';
comment on column pull_requests.deletions is 'Lines deleted.';
comment on column pull_requests.changed_files is 'Files changed.';
comment on column pull_requests.created_at is 'When it was created, by upstream''s clock.';
comment on column pull_requests.updated_at is 'When it was last changed, by upstream''s clock; whole seconds, and not every change moves it.';
comment on column pull_requests.closed_at is 'When it was closed, by upstream''s clock.';
comment on column pull_requests.merged_at is 'When it was merged, by upstream''s clock.';
comment on column pull_requests.detail is 'Like document: the keys that upstream sends only for a single resource, not in lists.';
comment on column pull_requests.document is 'Everything upstream sent but the body, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0004 the column body, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column pull_requests.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column pull_requests.seen_at is 'When the newest observation was made, by our clock.';
comment on column pull_requests.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column pull_requests.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column pull_requests.revision is 'Grows with every change that the mirror applies, over all tables.';
comment on table issue_comments is 'One row is one comment in the conversation of an issue or pull request.';
comment on column issue_comments.repository_id is 'The repository''s id at upstream.';
comment on column issue_comments.id is 'Upstream''s id.';
comment on column issue_comments.node_id is 'Upstream''s global (GraphQL) id.';
comment on column issue_comments.issue_number is 'issues.number in the same repository.';
comment on column issue_comments.user_id is 'The author: users.id. Null for a deleted account.';
comment on column issue_comments.author_association is 'How the author relates to the repository: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, FIRST_TIME_CONTRIBUTOR, FIRST_TIMER, MANNEQUIN, NONE.';
comment on column issue_comments.body is 'Markdown. NUL and lone surrogates, which Postgres cannot hold, read as U+FFFD here; the API serves them as they were.';
comment on column issue_comments.created_at is 'When it was created, by upstream''s clock.';
comment on column issue_comments.updated_at is 'When it was last changed, by upstream''s clock; whole seconds, and not every change moves it.';
comment on column issue_comments.document is 'Everything upstream sent but the body, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0004 the column body, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column issue_comments.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column issue_comments.seen_at is 'When the newest observation was made, by our clock.';
comment on column issue_comments.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column issue_comments.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column issue_comments.revision is 'Grows with every change that the mirror applies, over all tables.';
comment on table pull_request_review_comments is 'One row is one comment on the diff of a pull request.';
comment on column pull_request_review_comments.repository_id is 'The repository''s id at upstream.';
comment on column pull_request_review_comments.id is 'Upstream''s id.';
comment on column pull_request_review_comments.node_id is 'Upstream''s global (GraphQL) id.';
comment on column pull_request_review_comments.pull_number is 'pull_requests.number in the same repository.';
comment on column pull_request_review_comments.review_id is 'pull_request_reviews.id.';
comment on column pull_request_review_comments.in_reply_to_id is 'The comment this one answers.';
comment on column pull_request_review_comments.user_id is 'The author: users.id. Null for a deleted account.';
comment on column pull_request_review_comments.author_association is 'How the author relates to the repository: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, FIRST_TIME_CONTRIBUTOR, FIRST_TIMER, MANNEQUIN, NONE.';
comment on column pull_request_review_comments.path is 'The file.';
comment on column pull_request_review_comments.line is 'The line in the newest diff. Null: outdated.';
comment on column pull_request_review_comments.side is 'LEFT or RIGHT.';
comment on column pull_request_review_comments.commit_id is 'The commit it is about.';
comment on column pull_request_review_comments.body is 'Markdown. NUL and lone surrogates, which Postgres cannot hold, read as U+FFFD here; the API serves them as they were.';
comment on column pull_request_review_comments.created_at is 'When it was created, by upstream''s clock.';
comment on column pull_request_review_comments.updated_at is 'When it was last changed, by upstream''s clock; whole seconds, and not every change moves it.';
comment on column pull_request_review_comments.document is 'Everything upstream sent but the body, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0004 the column body, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column pull_request_review_comments.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column pull_request_review_comments.seen_at is 'When the newest observation was made, by our clock.';
comment on column pull_request_review_comments.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column pull_request_review_comments.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column pull_request_review_comments.revision is 'Grows with every change that the mirror applies, over all tables.';
comment on table pull_request_reviews is 'One row is one review of a pull request.';
comment on column pull_request_reviews.repository_id is 'The repository''s id at upstream.';
comment on column pull_request_reviews.id is 'Upstream''s id.';
comment on column pull_request_reviews.node_id is 'Upstream''s global (GraphQL) id.';
comment on column pull_request_reviews.pull_number is 'pull_requests.number in the same repository.';
comment on column pull_request_reviews.user_id is 'The author: users.id. Null for a deleted account.';
comment on column pull_request_reviews.author_association is 'How the author relates to the repository: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, FIRST_TIME_CONTRIBUTOR, FIRST_TIMER, MANNEQUIN, NONE.';
comment on column pull_request_reviews.state is 'APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED or PENDING.';
comment on column pull_request_reviews.body is 'Markdown. NUL and lone surrogates, which Postgres cannot hold, read as U+FFFD here; the API serves them as they were.';
comment on column pull_request_reviews.commit_id is 'The commit it is about.';
comment on column pull_request_reviews.submitted_at is 'When it was submitted. Null: pending.';
comment on column pull_request_reviews.updated_at is 'When it was last changed, by upstream''s clock; whole seconds, and not every change moves it.';
comment on column pull_request_reviews.detail is 'Like document: the keys that upstream sends only in webhooks and GraphQL.';
comment on column pull_request_reviews.document is 'Everything upstream sent but the body, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0004 the column body, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column pull_request_reviews.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column pull_request_reviews.seen_at is 'When the newest observation was made, by our clock.';
comment on column pull_request_reviews.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column pull_request_reviews.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column pull_request_reviews.revision is 'Grows with every change that the mirror applies, over all tables.';
comment on table deliveries is 'The inbox. One row is one webhook delivery, acknowledged to upstream.';
comment on column deliveries.id is 'Our own id, ordered by time.';
comment on column deliveries.hook_id is 'Upstream''s id of the hook; 0 when it named none.';
comment on column deliveries.guid is 'X-GitHub-Delivery. One event has one GUID at all hooks.';
comment on column deliveries.event is 'X-GitHub-Event.';
comment on column deliveries.action is 'The payload''s action.';
comment on column deliveries.repository_id is 'The repository''s id at upstream.';
comment on column deliveries.payload is 'The JSON as it was received.';
comment on column deliveries.status is 'pending, applied, ignored or failed.';
comment on column deliveries.attempts is 'How often it was tried.';
comment on column deliveries.reason is 'Why it was ignored, or how it failed last.';
comment on column deliveries.received_at is 'When it was received, by our clock.';
comment on column deliveries.settled_at is 'When its status became final, by our clock.';
comment on table backfill_phases is 'One row is one phase of a repository''s backfill and the page it will read next.';
comment on column backfill_phases.repository_id is 'The repository''s id at upstream.';
comment on column backfill_phases.phase is 'Which kind of resource it reads.';
comment on column backfill_phases.cursor is 'Where it goes on: a path, or a GraphQL cursor. Null: at the first page.';
comment on column backfill_phases.pages is 'Pages stored so far.';
comment on column backfill_phases.resources is 'Resources stored so far.';
comment on column backfill_phases.expected_pages is 'How many pages there will be. Null: upstream has not said.';
comment on column backfill_phases.started_at is 'When it began, by our clock.';
comment on column backfill_phases.finished_at is 'When it ended, by our clock.';
comment on table repository_syncs is 'One row is one mirrored repository and how far its sync has come.';
comment on column repository_syncs.repository_id is 'The repository''s id at upstream.';
comment on column repository_syncs.state is 'backfilling, live, paused or gone.';
comment on column repository_syncs.added_at is 'When it was asked for, by our clock.';
comment on column repository_syncs.backfilled_at is 'When the first full copy was complete, by our clock.';
comment on column repository_syncs.issues_synced_at is 'Watermark of issues, by upstream''s clock.';
comment on column repository_syncs.comments_synced_at is 'Watermark of comments, by upstream''s clock.';
comment on column repository_syncs.review_comments_synced_at is 'Watermark of review comments, by upstream''s clock.';
comment on column repository_syncs.pulls_synced_at is 'Watermark of pull requests, by upstream''s clock.';
comment on column repository_syncs.confirmed_at is 'When upstream last confirmed what we hold, by our clock.';
comment on column repository_syncs.problem is 'What is wrong, in words. Null: nothing.';
comment on table selections is 'One row is one wish of what to mirror: owner/name, or owner/*.';
comment on column selections.pattern is 'owner/name or owner/*, in lower case.';
comment on column selections.added_at is 'When it was asked for, by our clock.';
comment on column selections.resolved_at is 'When its repositories were last found, by our clock. Null: never.';
comment on column selections.problem is 'What is wrong, in words. Null: nothing.';
comment on table refresh_marks is 'One row is one resource about which the mirror must ask upstream: what we were told contradicts itself.';
comment on column refresh_marks.kind is 'user, repository, label, milestone, issue, pull_request, issue_comment, review or review_comment.';
comment on column refresh_marks.repository_id is 'The repository''s id at upstream; 0 for users and repositories.';
comment on column refresh_marks.key is 'Upstream''s id, or the number for issues and pull requests.';
comment on column refresh_marks.asked_at is 'When the newest reason to ask arose, by our clock.';
comment on column refresh_marks.not_before is 'When to ask, by our clock.';
comment on table validators is 'One row is what upstream gave us to ask the same question again without cost.';
comment on column validators.credential is 'A fingerprint of the token that asked.';
comment on column validators.path is 'The file.';
comment on column validators.etag is 'The ETag of the answer.';
comment on column validators.last_modified is 'The Last-Modified of the answer.';
comment on column validators.next is 'The next page by the answer''s Link header.';
comment on column validators.is_full is 'Whether the page was full.';
comment on column validators.seen_at is 'When the newest observation was made, by our clock.';
comment on table api_tokens is 'One row is one token of our own, which a caller of the read API shows.';
comment on column api_tokens.hash is 'SHA-256 of the token, lower hex.';
comment on column api_tokens.user_id is 'users.id of who it answers as.';
comment on column api_tokens.can_write is 'Whether writes are passed through for it.';
comment on column api_tokens.created_at is 'When it was made, by our clock.';
comment on column api_tokens.last_used_at is 'When it was last shown, by our clock.';
comment on column api_tokens.revoked_at is 'When it was revoked.';
