-- Oldest Tain that works beside this: 0.2.0
-- The schema of Tain 0.3.0, in one migration. Databases of 0.3.0 have it already: there it was made by migrations 1 to 46.
-- The areas are those of the schema's description: the resources of src/kinds, and the files of db/schema.

-- # Search

-- Words as search knows them: letters and digits in any case, by their English stem. No word is too common to be found.
create text search dictionary word_stems (template = snowball, language = english);
create text search configuration words (parser = default);
alter text search configuration words add mapping for asciiword, word with word_stems;
alter text search configuration words add mapping for numword, int, uint, float, sfloat with simple;

-- Only letters and digits make words, so that paths, addresses and names with dashes are found by their parts.
-- A text search vector is refused beyond a megabyte; what is cut off here cannot make a larger one.
create function search_text(text) returns text language sql immutable parallel safe
  return regexp_replace(left($1, 100000), '[^[:alnum:]]+', ' ', 'g');
create function search_words(text) returns tsvector language sql immutable parallel safe
  return to_tsvector('words', search_text(coalesce($1, '')));
-- Words that stand together have to stand so in what is found.
create function search_query(text) returns tsquery language sql immutable parallel safe
  return phraseto_tsquery('words', search_text($1));

-- # Resources

-- Each mirrored row says with it when it was last changed, so rows of all tables have an order.
create sequence revision;

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
create index users_login on users (lower(login));
create index users_node_id on users (node_id);
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
create index repositories_full_name on repositories (lower(full_name));
create index repositories_owner on repositories (owner_id);
create index repositories_node_id on repositories (node_id);
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
create index labels_name on labels (repository_id, lower(name));
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
create index milestones_number on milestones (repository_id, number);
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
  search tsvector generated always as (setweight(search_words(title), 'A') || setweight(search_words(body), 'B')) stored,
  primary key (repository_id, number)
);
create index issues_id on issues (id);
create index issues_created on issues (repository_id, created_at, number);
create index issues_updated on issues (repository_id, updated_at, number);
create index issues_comments on issues (repository_id, comments, number);
create index issues_open_created on issues (repository_id, created_at, number) where state = 'open';
create index issues_user on issues (repository_id, user_id, created_at, number);
create index issues_milestone on issues (repository_id, milestone_id, created_at, number) where milestone_id is not null;
-- What lists count.
create index issues_shown on issues (repository_id, state) where id is not null and deleted_at is null and not is_pull_request;
create index issues_search on issues using gin (search);
-- What a person has to do with, in all repositories.
create index issues_by_user on issues (user_id, repository_id, number);
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
comment on column issues.search is 'The words of the title (A) and the body (B): search @@ search_query(''…'').';

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
create index pull_requests_id on pull_requests (id);
create index pull_requests_created on pull_requests (repository_id, created_at, number);
create index pull_requests_updated on pull_requests (repository_id, updated_at, number);
create index pull_requests_open_created on pull_requests (repository_id, created_at, number) where state = 'open';
create index pull_requests_shown on pull_requests (repository_id, state) where id is not null and deleted_at is null;
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
  search tsvector generated always as (search_words(body)) stored,
  primary key (repository_id, id)
);
create index issue_comments_issue on issue_comments (repository_id, issue_number, id);
create index issue_comments_updated on issue_comments (repository_id, updated_at, id);
create index issue_comments_search on issue_comments using gin (search);
create index issue_comments_user on issue_comments (user_id, repository_id, issue_number);
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
comment on column issue_comments.search is 'The words of the body: search @@ search_query(''…'').';

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
create index pull_request_reviews_pull on pull_request_reviews (repository_id, pull_number, id);
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
create index pull_request_review_comments_pull on pull_request_review_comments (repository_id, pull_number, id);
create index pull_request_review_comments_updated on pull_request_review_comments (repository_id, updated_at, id);
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
create index check_runs_head on check_runs (repository_id, head_sha);
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
create index check_suites_head on check_suites (repository_id, head_sha);
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
create index commit_statuses_head on commit_statuses (repository_id, sha);
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

create table releases (
  repository_id bigint not null,
  id bigint not null,
  node_id text,
  tag_name text not null,
  target_commitish text,
  name text,
  draft boolean not null,
  prerelease boolean,
  author_id bigint,
  created_at timestamptz not null,
  published_at timestamptz,
  updated_at timestamptz,
  document json not null,
  key_stamps json,
  seen_at timestamptz not null,
  seen_by_read boolean not null,
  deleted_at timestamptz,
  revision bigint not null default nextval('revision'),
  primary key (repository_id, id)
);
create index releases_created on releases (repository_id, created_at desc, id desc);
create index releases_tag on releases (repository_id, tag_name);
comment on table releases is 'One row is one release, with its assets in the document. Drafts are here where the mirror''s credential may push.';
comment on column releases.repository_id is 'The repository''s id at upstream.';
comment on column releases.id is 'Upstream''s id.';
comment on column releases.node_id is 'Upstream''s global (GraphQL) id.';
comment on column releases.tag_name is 'The tag. Of a draft it may not exist yet.';
comment on column releases.target_commitish is 'The branch or commit that the tag is made from.';
comment on column releases.name is 'The title.';
comment on column releases.draft is 'Whether it is a draft: only those who may push see it.';
comment on column releases.prerelease is 'Whether it is marked as not ready for production.';
comment on column releases.author_id is 'Who made it.';
comment on column releases.created_at is 'When the commit of its tag was made, by upstream. Lists are in this order.';
comment on column releases.published_at is 'When it was published, by upstream''s clock. Null: it is a draft.';
comment on column releases.updated_at is 'When it was last changed, by upstream''s clock; 1970 where upstream does not say. Downloads and assets do not move it.';
comment on column releases.document is 'Everything upstream sent, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column releases.key_stamps is 'Stamps of the document''s keys that differ from the row''s own: {key: [updated_at ms, seen_at ms, is read]}.';
comment on column releases.seen_at is 'When the newest observation was made, by our clock.';
comment on column releases.seen_by_read is 'Whether the newest observation was read from upstream; false: a webhook brought it.';
comment on column releases.deleted_at is 'When we learned that upstream deleted it, by our clock: the row is a tombstone. Null: it exists.';
comment on column releases.revision is 'Grows with every change that the mirror applies, over all tables.';

-- # Lists, and what belongs to resources

-- What a list by label asks of an issue stands beside the label. So such a list is read from one index in its own order,
-- however large the repository is. The key leads with the issue, by which its labels are found.
create table issue_labels (
  repository_id bigint not null,
  label_id bigint not null,
  number integer not null,
  state text not null,
  is_pull_request boolean not null,
  is_shown boolean not null,
  created_at timestamptz not null,
  primary key (repository_id, number, label_id)
);
create index issue_labels_listed on issue_labels (repository_id, label_id, is_shown, is_pull_request, state, created_at, number);
comment on table issue_labels is 'One row says that an issue or pull request carries a label.';
comment on column issue_labels.repository_id is 'The repository''s id at upstream.';
comment on column issue_labels.label_id is 'labels.id in the same repository.';
comment on column issue_labels.number is 'The number people use, counted per repository; issues and pull requests share the count.';
comment on column issue_labels.state is 'issues.state.';
comment on column issue_labels.is_pull_request is 'issues.is_pull_request.';
comment on column issue_labels.is_shown is 'Whether the issue is whole and not deleted.';
comment on column issue_labels.created_at is 'issues.created_at.';

-- Who adds a label reads these columns from the issue, whose row is locked until then.
create function follow_labelled_issue() returns trigger language plpgsql as $$
begin
  update issue_labels set state = new.state, is_pull_request = new.is_pull_request,
      is_shown = new.id is not null and new.deleted_at is null, created_at = new.created_at
    where repository_id = new.repository_id and number = new.number;
  return null;
end
$$;
create trigger issue_labels_follow after update on issues for each row
  when ((old.state, old.is_pull_request, old.id is null, old.deleted_at is null, old.created_at)
    is distinct from (new.state, new.is_pull_request, new.id is null, new.deleted_at is null, new.created_at))
  execute function follow_labelled_issue();

create table issue_assignees (
  repository_id bigint not null,
  user_id bigint not null,
  number integer not null,
  primary key (repository_id, user_id, number)
);
create index issue_assignees_number on issue_assignees (repository_id, number);
create index issue_assignees_user on issue_assignees (user_id, repository_id, number);
comment on table issue_assignees is 'One row says that an issue or pull request is assigned to a user.';
comment on column issue_assignees.repository_id is 'The repository''s id at upstream.';
comment on column issue_assignees.user_id is 'The author: users.id. Null for a deleted account.';
comment on column issue_assignees.number is 'The number people use, counted per repository; issues and pull requests share the count.';

create table mirrored_lists (
  repository_id bigint not null,
  list text not null check (list in ('commits', 'files', 'threads')),
  number integer not null,
  version text not null,
  heard_at timestamptz not null,
  read_at timestamptz,
  told_at timestamptz,
  primary key (repository_id, list, number)
);
comment on table mirrored_lists is 'One row is one list that is held whole: the commits, files or review threads of one pull request.';
comment on column mirrored_lists.repository_id is 'The repository''s id at upstream.';
comment on column mirrored_lists.list is 'commits, files or threads.';
comment on column mirrored_lists.number is 'The number of the pull request.';
comment on column mirrored_lists.version is 'What it is the list of: the head''s hash and the base branch. It counts only while the pull request has these.';
comment on column mirrored_lists.heard_at is 'When we first heard of that version, by our clock: replicas lag behind that moment.';
comment on column mirrored_lists.read_at is 'When it was last read to its end, by our clock. Null: it has to be read.';
comment on column mirrored_lists.told_at is 'When something said last that it has changed and its version has not, by our clock: replicas lag behind that moment. Null: nothing did.';

create table pull_request_commits (
  repository_id bigint not null,
  number integer not null,
  position integer not null,
  sha text not null,
  node_id text,
  message text,
  author_id bigint,
  committer_id bigint,
  authored_at timestamptz,
  committed_at timestamptz,
  document json not null,
  primary key (repository_id, number, position)
);
create index pull_request_commits_sha on pull_request_commits (repository_id, sha);
comment on table pull_request_commits is 'One row is one commit of one pull request, as upstream listed it; of long ones the first 250.';
comment on column pull_request_commits.repository_id is 'The repository''s id at upstream.';
comment on column pull_request_commits.number is 'The number of the pull request.';
comment on column pull_request_commits.position is 'Its place in the list, from 0: the oldest.';
comment on column pull_request_commits.sha is 'The commit''s hash.';
comment on column pull_request_commits.node_id is 'Upstream''s global (GraphQL) id.';
comment on column pull_request_commits.message is 'The message.';
comment on column pull_request_commits.author_id is 'The author''s account. Null: upstream knows none.';
comment on column pull_request_commits.committer_id is 'The committer''s account. Null: upstream knows none.';
comment on column pull_request_commits.authored_at is 'When it was written, as Git says.';
comment on column pull_request_commits.committed_at is 'When it was committed, as Git says.';
comment on column pull_request_commits.document is 'Everything upstream sent, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';

create table pull_request_files (
  repository_id bigint not null,
  number integer not null,
  position integer not null,
  filename text not null,
  previous_filename text,
  status text not null,
  additions integer,
  deletions integer,
  changes integer,
  sha text,
  head_sha text,
  document json not null,
  primary key (repository_id, number, position)
);
comment on table pull_request_files is 'One row is one file that a pull request changes, as upstream listed it; of many the first 3,000.';
comment on column pull_request_files.repository_id is 'The repository''s id at upstream.';
comment on column pull_request_files.number is 'The number of the pull request.';
comment on column pull_request_files.position is 'Its place in the list, from 0.';
comment on column pull_request_files.filename is 'Its path.';
comment on column pull_request_files.previous_filename is 'Its path before. Null: it was not renamed.';
comment on column pull_request_files.status is 'added, removed, modified, renamed, copied, changed or unchanged.';
comment on column pull_request_files.additions is 'How many lines come.';
comment on column pull_request_files.deletions is 'How many lines go.';
comment on column pull_request_files.changes is 'Both together.';
comment on column pull_request_files.sha is 'The hash of its content.';
comment on column pull_request_files.head_sha is 'The head of the pull request that its addresses name.';
comment on column pull_request_files.document is 'Everything upstream sent, as JSON; marks as in pull_request_commits.';

create table pull_request_threads (
  repository_id bigint not null,
  number integer not null,
  position integer not null,
  node_id text not null,
  root_id bigint not null,
  is_resolved boolean not null,
  is_outdated boolean not null,
  document json not null,
  primary key (repository_id, number, position)
);
create index pull_request_threads_node on pull_request_threads (node_id);
create index pull_request_threads_root on pull_request_threads (repository_id, root_id);
comment on table pull_request_threads is 'One row is one thread of review comments of one pull request, as upstream listed it.';
comment on column pull_request_threads.repository_id is 'The repository''s id at upstream.';
comment on column pull_request_threads.number is 'The number of the pull request.';
comment on column pull_request_threads.position is 'Its place in the list, from 0.';
comment on column pull_request_threads.node_id is 'Upstream''s global (GraphQL) id.';
comment on column pull_request_threads.root_id is 'The review comment that begins it, as the others say: in_reply_to_id of pull_request_review_comments.';
comment on column pull_request_threads.is_resolved is 'Whether somebody has resolved it.';
comment on column pull_request_threads.is_outdated is 'Whether the lines that it is about have changed since.';
comment on column pull_request_threads.document is 'What upstream''s GraphQL shows of it, as JSON; marks as in pull_request_commits.';

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

create table refs (
  repository_id bigint not null,
  kind text not null check (kind in ('heads', 'tags')),
  name text collate "C" not null,
  sha text,
  commit_sha text,
  protected boolean,
  position integer,
  document json,
  listed json,
  told_at timestamptz,
  deleted_at timestamptz,
  doubt text check (doubt in ('told', 'contradicted')),
  primary key (repository_id, kind, name)
);
comment on table refs is 'One row is one branch or tag.';
comment on column refs.repository_id is 'The repository''s id at upstream.';
comment on column refs.kind is 'heads (branches) or tags.';
comment on column refs.name is 'The name without refs/heads/ or refs/tags/.';
comment on column refs.sha is 'The hash of what it points to: a commit, or the object of an annotated tag. Null: not known yet.';
comment on column refs.commit_sha is 'The commit that it leads to. Null: not known yet.';
comment on column refs.protected is 'Of a branch, whether a rule protects it. Null: not known yet, or a tag.';
comment on column refs.position is 'Of a tag, its place in upstream''s list, from 0. Places may be free. Null: not known yet, or a branch.';
comment on column refs.document is 'As upstream shows the ref by itself, as JSON; marks as in releases. Null: it was not read yet.';
comment on column refs.listed is 'Of a tag, as upstream lists it, as JSON; marks as in releases. Null: it was not read yet, or a branch.';
comment on column refs.told_at is 'When a webhook last told of it, by our clock: what replicas showed until somewhat later is older. Null: never.';
comment on column refs.deleted_at is 'When a webhook told that it was deleted, by our clock; the row goes with the next read. Null: it exists.';
comment on column refs.doubt is 'Why upstream has to be asked: told: it was made or deleted, and its push is still to come; contradicted: a push began elsewhere. Null: it is as it is here.';

create table ref_lists (
  repository_id bigint not null,
  kind text not null check (kind in ('heads', 'tags')),
  read_at timestamptz,
  primary key (repository_id, kind)
);
comment on table ref_lists is 'One row is the list of all branches, or of all tags, of one repository.';
comment on column ref_lists.repository_id is 'The repository''s id at upstream.';
comment on column ref_lists.kind is 'heads (branches) or tags.';
comment on column ref_lists.read_at is 'When it was last read to its end, by our clock. Null: it is not all here.';

create table release_lists (
  repository_id bigint primary key,
  heard_at timestamptz,
  read_at timestamptz,
  is_half_stored boolean not null default false,
  shows_drafts boolean not null default false,
  latest_id bigint,
  latest_read_at timestamptz
);
comment on table release_lists is 'One row is the list of releases of one repository: whether it is all here, and which of them upstream calls the latest.';
comment on column release_lists.repository_id is 'The repository''s id at upstream.';
comment on column release_lists.heard_at is 'When a webhook last told of a release, by our clock. Null: never.';
comment on column release_lists.read_at is 'When the list was last read to its end, by our clock. Null: it is not all here.';
comment on column release_lists.is_half_stored is 'Whether pages of it were stored, and what they lack was not looked for yet.';
comment on column release_lists.shows_drafts is 'Whether the mirror''s credential was shown drafts when it read the list.';
comment on column release_lists.latest_id is 'The release that upstream calls the latest. Null: none.';
comment on column release_lists.latest_read_at is 'When upstream last said which is the latest, by our clock. It counts while no release has changed since. Null: never.';

create table shapes (
  id text primary key,
  keys text not null
);
comment on table shapes is 'One row is one ordered set of keys in which upstream was seen to embed a shared resource in another.';
comment on column shapes.id is 'A hash of the keys.';
comment on column shapes.keys is 'The keys, joined by commas.';

-- # What is followed

create table selections (
  pattern text primary key,
  added_at timestamptz not null,
  resolved_at timestamptz,
  problem text,
  account_type text,
  mirrors text[]
);
comment on table selections is 'One row is one wish of what to mirror: owner/name, or owner/*.';
comment on column selections.pattern is 'owner/name or owner/*, in lower case.';
comment on column selections.added_at is 'When it was asked for, by our clock.';
comment on column selections.resolved_at is 'When its repositories were last found, by our clock. Null: never.';
comment on column selections.problem is 'Not read any more: see the table problems.';
comment on column selections.account_type is 'User or Organization, of a wish `owner/*`: where its repositories are listed; null while upstream has not said.';
comment on column selections.mirrors is 'What is mirrored of its repositories beside what MIRROR says. Null: nothing.';

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
  mirrors text[] not null default '{}',
  checks_confirmed_at timestamptz,
  lists_confirmed_at timestamptz,
  base_pushed_at timestamptz,
  parts_changed_at timestamptz,
  parts_missing text,
  constraint repository_syncs_state check (state in ('backfilling', 'live', 'paused', 'gone')),
  constraint repository_syncs_pause check (state <> 'paused' or problem is not null)
);
comment on table repository_syncs is 'One row is one mirrored repository and how far its sync has come.';
comment on column repository_syncs.repository_id is 'The repository''s id at upstream.';
comment on column repository_syncs.state is 'backfilling, live, paused or gone.';
comment on column repository_syncs.added_at is 'When it was asked for, the last time if it was removed in between, by our clock.';
comment on column repository_syncs.backfilled_at is 'When the first full copy was complete, by our clock.';
comment on column repository_syncs.issues_synced_at is 'Watermark of issues, by upstream''s clock.';
comment on column repository_syncs.comments_synced_at is 'Watermark of comments, by upstream''s clock.';
comment on column repository_syncs.review_comments_synced_at is 'Watermark of review comments, by upstream''s clock.';
comment on column repository_syncs.pulls_synced_at is 'Watermark of pull requests, by upstream''s clock.';
comment on column repository_syncs.confirmed_at is 'When upstream last confirmed what we hold, by our clock.';
comment on column repository_syncs.problem is 'What is wrong, in words. Null: nothing.';
comment on column repository_syncs.mirrors is 'What is mirrored beside issues and pull requests: checks, commits, refs, releases, threads.';
comment on column repository_syncs.checks_confirmed_at is 'When upstream was last asked about the checks of all heads, by our clock. Null: never.';
comment on column repository_syncs.lists_confirmed_at is 'When upstream was last asked how long the lists of open pull requests are, by our clock. Null: never.';
comment on column repository_syncs.base_pushed_at is 'When a push to the base of an open pull request was last heard of, by our clock: its lists may have become shorter. Null: never.';
comment on column repository_syncs.parts_changed_at is 'When it last changed what is mirrored of it beside issues and pull requests: what upstream made before is no news.';
comment on column repository_syncs.parts_missing is 'The parts that upstream did not show when it last confirmed the repository, as answers name them: labels, pulls …; null: none.';

-- A job that began before a repository was removed must not bring it back by what it writes at its end. Only a wish does,
-- and a wish says when it was made.
create function refuse_move() returns trigger language plpgsql as $$
begin
  raise exception 'repository % was removed: it does not become % without a new wish', old.repository_id, new.state
    using errcode = 'check_violation', constraint = 'repository_syncs_move', table = 'repository_syncs';
end
$$;
create trigger repository_syncs_move before update of state on repository_syncs for each row
  when (old.state = 'gone' and new.state <> 'gone' and (new.state <> 'backfilling' or new.added_at = old.added_at))
  execute function refuse_move();

create table backfill_phases (
  repository_id bigint not null,
  phase text not null,
  cursor text,
  pages integer not null default 0,
  resources integer not null default 0,
  expected_pages integer,
  started_at timestamptz,
  finished_at timestamptz,
  window_place text,
  primary key (repository_id, phase)
);
comment on table backfill_phases is 'One row is one phase of a repository''s backfill and the page it will read next.';
comment on column backfill_phases.repository_id is 'The repository''s id at upstream.';
comment on column backfill_phases.phase is 'Which kind of resource it reads.';
comment on column backfill_phases.cursor is 'Where it goes on: a path, or a GraphQL cursor. Null: at the first page.';
comment on column backfill_phases.pages is 'Pages stored so far.';
comment on column backfill_phases.resources is 'Resources stored so far.';
comment on column backfill_phases.expected_pages is 'How many pages there will be. Null: upstream has not said.';
comment on column backfill_phases.started_at is 'When it began, by our clock.';
comment on column backfill_phases.finished_at is 'When it ended, by our clock.';
comment on column backfill_phases.window_place is 'The page within the window of a long list that begins at the cursor, as JSON; null: the list is read page by page.';

create table installations (
  id bigint primary key,
  account text not null,
  account_type text not null,
  repository_selection text not null,
  permissions json not null,
  events json not null,
  suspended_at timestamptz,
  listed_at timestamptz,
  told_at timestamptz
);
comment on table installations is 'One row is one account on which our GitHub App is installed, as upstream last showed it.';
comment on column installations.id is 'Upstream''s id of the installation.';
comment on column installations.account is 'The login of the user or organization.';
comment on column installations.account_type is 'User or Organization.';
comment on column installations.repository_selection is 'all, or selected.';
comment on column installations.permissions is 'What the account has granted: name to read, write or admin.';
comment on column installations.events is 'Which webhooks upstream sends of it.';
comment on column installations.suspended_at is 'Since when it is suspended, by upstream''s clock; null when it is not.';
comment on column installations.listed_at is 'When its repositories were last listed in full, by our clock; null: they are to be.';
comment on column installations.told_at is 'When a webhook last told of it, by our clock; null once a later read has seen that.';

create table installation_repositories (
  repository_id bigint primary key,
  installation_id bigint not null,
  full_name text not null,
  page integer not null
);
create index installation_repositories_installation on installation_repositories (installation_id);
comment on table installation_repositories is 'One row is one repository that an installation of our GitHub App covers, or covered once.';
comment on column installation_repositories.repository_id is 'Upstream''s id of the repository.';
comment on column installation_repositories.installation_id is 'Upstream''s id of the installation.';
comment on column installation_repositories.full_name is 'owner/name, as it was listed.';
comment on column installation_repositories.page is 'On which page of upstream''s list it stood: a page that has not changed still holds it. 0: it is covered no more.';

-- A webhook is kept here from its first delivery on. Until it is checked, `checked_until` is null.
create table hook_checks (
  repository_id bigint not null,
  hook_id bigint not null,
  checked_until timestamptz,
  missed bigint not null default 0,
  asked_at timestamptz,
  primary key (repository_id, hook_id)
);
comment on table hook_checks is 'One row is one of our webhooks at upstream and up to where its list of deliveries has been compared with the inbox.';
comment on column hook_checks.repository_id is 'Upstream''s id of the repository.';
comment on column hook_checks.hook_id is 'Upstream''s id of the webhook; 0 when it shows us none of ours, last asked at checked_until.';
comment on column hook_checks.checked_until is 'Deliveries up to here, by upstream''s clock, were asked for again if they were missing.';
comment on column hook_checks.missed is 'How many were missing, over all checks.';
comment on column hook_checks.asked_at is 'When upstream was last asked about it, by our clock, whatever came of it: the longest neglected comes first.';

create table hook_subscriptions (
  repository_id bigint primary key,
  url text not null,
  events text[] not null,
  asked_at timestamptz not null
);
comment on table hook_subscriptions is 'One row is the hook that we registered for a repository at upstream, and what it was last told to send.';
comment on column hook_subscriptions.repository_id is 'Upstream''s id of the repository.';
comment on column hook_subscriptions.url is 'Where it sends to.';
comment on column hook_subscriptions.events is 'What it was told to send: what the mirror follows and what targets want; * is all.';
comment on column hook_subscriptions.asked_at is 'When upstream was told, by our clock.';

create table origin (
  singleton boolean primary key default true,
  upstream text not null,
  claimed_at timestamptz not null,
  constraint origin_one_row check (singleton)
);
comment on table origin is 'The one row says what this database mirrors, so that no start mixes two upstreams in it. No row: no start has said so yet.';
comment on column origin.singleton is 'Always true: there is one row at most.';
comment on column origin.upstream is 'The REST address of upstream, or "simulator" for the demonstration, whose world begins anew at each start.';
comment on column origin.claimed_at is 'When it was said, by our clock.';

create table former_names (
  full_name text not null,
  repository_id bigint not null,
  primary key (full_name, repository_id)
);
create index former_names_repository on former_names (repository_id);
comment on table former_names is 'One row is one full name, in lower case, that a repository no longer has.';
comment on column former_names.full_name is 'owner/name, in lower case.';
comment on column former_names.repository_id is 'The repository''s id at upstream.';

create table issue_transfers (
  repository_id bigint not null,
  number integer not null,
  to_repository_id bigint not null,
  to_number integer not null,
  primary key (repository_id, number)
);
comment on table issue_transfers is 'One row is an issue that left for another repository, of which upstream answers with its new place.';
comment on column issue_transfers.repository_id is 'Where it was.';
comment on column issue_transfers.number is 'The number that it had there.';
comment on column issue_transfers.to_repository_id is 'Where it is, or was next; maybe not mirrored.';
comment on column issue_transfers.to_number is 'The number that it got there.';

-- Changed in place, often: room on each page keeps the changes there.
create table revisions (
  repository_id bigint primary key,
  revision bigint not null
) with (fillfactor = 50);
comment on table revisions is 'One row is what tells readers whether anything of a repository may have changed since they last looked.';
comment on column revisions.repository_id is 'Upstream''s id of the repository; 0 for people, whom all repositories show.';
comment on column revisions.revision is 'Another number after each transaction that changes what is shown of it, or who may see it.';

-- In plpgsql, which plans it once per connection: it is the last statement of nearly each transaction that writes. Rows are
-- taken in one order, so that transactions wait for each other but never deadlock. Two repositories can bear one name for a
-- moment, and a change of one may decide which of them is found by it.
create function raise_revisions(touched bigint[], names text[]) returns void language plpgsql as $$
begin
  insert into revisions (repository_id, revision)
    select id, nextval('revision') from (
      select unnest(touched) as id union select r.id from repositories r where lower(r.full_name) = any(names)
    ) t order by id
    on conflict (repository_id) do update set revision = excluded.revision;
end
$$;

create table eras (
  is_one boolean primary key default true,
  timeline text not null,
  id uuid not null,
  constraint eras_one check (is_one)
);
comment on table eras is 'One row: which history of the database this is. A server that was promoted goes on in another, in which commits may be missing that somebody has seen.';
comment on column eras.is_one is 'There is one row.';
comment on column eras.timeline is 'The timeline on which the primary writes its log, as the names of its files begin.';
comment on column eras.id is 'Unlike that of any other history, also where two servers were promoted to timelines of one number.';

-- Says that a new history has begun, if it has. Of several who say so at once, the first names it.
create function begin_era() returns void language sql as $$
  insert into eras (timeline, id) values (left(pg_walfile_name(pg_current_wal_flush_lsn()), 8), gen_random_uuid())
    on conflict (is_one) do update set timeline = excluded.timeline, id = excluded.id where eras.timeline <> excluded.timeline
$$;
select begin_era();

-- # Inbox

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
  traceparent text,
  is_made boolean not null default false,
  unique (hook_id, guid),
  constraint deliveries_status check (status in ('pending', 'applied', 'ignored', 'failed'))
);
create index deliveries_pending on deliveries (received_at) where status = 'pending';
create index deliveries_received on deliveries (received_at);
-- Which webhooks told of a repository lately.
create index deliveries_repository on deliveries (repository_id, received_at);
create index deliveries_failed on deliveries (received_at) where status = 'failed';
-- Payloads are written once, read once and kept for days. pglz takes longer than all else that storing one does; where the
-- server has no lz4 they stay as they came.
do $$
begin
  if exists (select from pg_settings where name = 'default_toast_compression' and 'lz4' = any (enumvals)) then
    alter table deliveries alter column payload set compression lz4;
  else
    alter table deliveries alter column payload set storage external;
  end if;
end
$$;
comment on table deliveries is 'The inbox. One row is one webhook delivery, acknowledged to upstream.';
comment on column deliveries.id is 'Our own id, ordered by time.';
comment on column deliveries.hook_id is 'Upstream''s id of the hook; 0 when it named none; -1: we made it, of a change that no webhook told of.';
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
comment on column deliveries.traceparent is 'Names the trace that it arrived in (W3C Trace Context). Null: it is not told.';
comment on column deliveries.is_made is 'Whether no webhook told of the change: we made it, or the mirror that is our upstream did.';

-- # Events

create sequence event_place;
create table events (
  repository_id bigint not null,
  guid text not null,
  id bigint,
  delivery_id uuid not null,
  event text not null,
  action text,
  owner_id bigint,
  received_at timestamptz not null,
  is_made boolean not null default false,
  number integer,
  is_pull_request boolean,
  primary key (repository_id, guid),
  unique (repository_id, id)
);
create index events_delivery on events (delivery_id);
create index events_held on events (repository_id) where id is null;
create index events_placed on events (id) where id is not null;
comment on table events is 'The ordered log. One row is one event as others hear of it, written by the transaction that settled its delivery, and kept as long as the delivery is.';
comment on column events.repository_id is 'The repository''s id at upstream; 0: it concerns none.';
comment on column events.guid is 'Upstream''s GUID: one event has one at all hooks, and is told once.';
comment on column events.id is 'Its place in the log, given in the order of receipt; null: a delivery that came before it is not settled yet.';
comment on column events.delivery_id is 'The delivery that holds the payload.';
comment on column events.event is 'The event''s name, as upstream sent it.';
comment on column events.action is 'Its action; null: it has none.';
comment on column events.owner_id is 'users.id of the repository''s owner, or of the organization that it concerns; null: neither is known.';
comment on column events.received_at is 'When its delivery arrived, by our clock.';
comment on column events.is_made is 'Whether we made it of a change that no webhook told of. Its payload has the form of upstream''s.';
comment on column events.number is 'The number of the issue or pull request that it is about; null: it is about none.';
comment on column events.is_pull_request is 'Whether that is a pull request; null: it is about none.';

create table event_log (
  is_one boolean primary key default true,
  pruned_id bigint not null,
  constraint event_log_one check (is_one)
);
comment on table event_log is 'One row at most: what the log no longer has. Without a row nothing was pruned since its first event.';
comment on column event_log.is_one is 'There is one row.';
comment on column event_log.pruned_id is 'events.id of the latest event that was pruned. Who has read up to there has missed nothing.';

create table found_changes (
  repository_id bigint not null,
  kind text not null,
  key bigint not null,
  aspect text not null,
  was json,
  found_at timestamptz,
  heard_at timestamptz,
  made json,
  made_until timestamptz,
  made_at timestamptz,
  overtaken boolean not null default false,
  primary key (repository_id, kind, key, aspect),
  constraint found_changes_was check (found_at is null or was is not null),
  constraint found_changes_made check (made is null or made_at is not null)
);
create index found_changes_found on found_changes (found_at) where found_at is not null;
comment on table found_changes is 'One row is one thing of a resource that was found changed and that no webhook has told of: an event is made of it, unless the webhook comes first. Then it says what that event told, for webhooks that come late.';
comment on column found_changes.repository_id is 'The repository''s id at upstream.';
comment on column found_changes.kind is 'The kind of the resource, as in refresh_marks.';
comment on column found_changes.key is 'Its id at upstream, or its number where it is an issue or a pull request.';
comment on column found_changes.aspect is 'What of it: exists, a key such as title, or a member of a list such as label 7.';
comment on column found_changes.was is 'What others were last told of it, or the mirror had before. A text stands as upstream wrote it.';
comment on column found_changes.found_at is 'Since when a change waits for its webhook, by our clock; null: none does.';
comment on column found_changes.heard_at is 'When a webhook last told of it, by our clock, while this row was here.';
comment on column found_changes.made is 'The values that the last event told that was made of it; null: none was.';
comment on column found_changes.made_until is 'The updated_at of the resource as that event showed it; null: it has none.';
comment on column found_changes.made_at is 'When that event was made, by our clock; null: none was.';
comment on column found_changes.overtaken is 'Whether a webhook has told of something newer since.';

-- Web processes read webhooks again only as events that others are told of.
create function event_payloads(places bigint[], most_bytes bigint) returns table (id bigint, payload bytea)
  language sql stable security definer set search_path = public as $$
    select p.id, p.payload from (
      select e.id, d.payload, row_number() over going as place, sum(octet_length(d.payload)) over going as bytes
        from events e join deliveries d on d.id = e.delivery_id where e.id = any(places) window going as (order by e.id)
    ) p where p.place = 1 or p.bytes <= most_bytes order by p.id
  $$;
revoke all on function event_payloads(bigint[], bigint) from public;

-- # Targets

create table targets (
  id bigint generated always as identity primary key,
  scope text not null,
  scope_id bigint not null,
  made_by text not null,
  url text not null,
  content_type text not null,
  insecure_ssl boolean not null,
  secret bytea,
  events text[] not null,
  active boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  accepted_at timestamptz,
  disabled_at timestamptz,
  problem text,
  rewrite_to text,
  installation_id bigint,
  constraint targets_scope check (scope in ('repository', 'organization', 'everything')),
  constraint targets_made_by check (made_by in ('api', 'operator')),
  constraint targets_content_type check (content_type in ('json', 'form')),
  constraint targets_disabled check ((disabled_at is null) = (problem is null))
);
create index targets_scope on targets (scope, scope_id);
comment on table targets is 'One row is one address that events are sent to: a hook that somebody registered here, or one that an operator named.';
comment on column targets.id is 'Our own id, which the hooks API shows.';
comment on column targets.scope is 'What it hears of: a repository, an organization with all its repositories, or everything that is mirrored.';
comment on column targets.scope_id is 'Upstream''s id of the repository or organization; 0 for everything.';
comment on column targets.made_by is 'api: a caller registered it. operator: by the command line.';
comment on column targets.url is 'Where requests go.';
comment on column targets.content_type is 'json, or form: the document is the field payload.';
comment on column targets.insecure_ssl is 'Whether its certificate is not checked.';
comment on column targets.secret is 'What requests are signed with, encrypted by a key made of WEBHOOK_SECRET; null: they are not signed.';
comment on column targets.events is 'The events that it wants; * is all.';
comment on column targets.active is 'Whether its owner wants anything at present. What happens meanwhile is not sent later.';
comment on column targets.created_at is 'When it was made, by our clock.';
comment on column targets.updated_at is 'When its owner last changed it, by our clock.';
comment on column targets.accepted_at is 'When it last accepted a request, to the minute, by our clock.';
comment on column targets.disabled_at is 'Since when nothing is sent because it accepted nothing for long; what happens meanwhile waits. Null: it is not disabled.';
comment on column targets.problem is 'Why it is disabled, in words.';
comment on column targets.rewrite_to is 'The mirror''s API address, which stands in what is sent for upstream''s; null: what upstream sent is sent, byte for byte.';
comment on column targets.installation_id is 'Upstream''s id of the installation that is named in what is sent, for the App whose URL the target is; null: none.';

-- Without a foreign key: who writes an event into the log must not fail because a target is removed at that moment. What it
-- writes for that target is pruned.
create table target_cursors (
  target_id bigint not null,
  repository_id bigint not null,
  done_id bigint not null,
  wanted_id bigint not null,
  attempts integer not null default 0,
  first_tried_at timestamptz,
  retry_at timestamptz,
  held_until timestamptz,
  held_by uuid,
  primary key (target_id, repository_id)
);
create index target_cursors_pending on target_cursors (target_id, done_id) where wanted_id > done_id;
comment on table target_cursors is 'One row is how far a target has come with the events of one repository. They are sent one after the other.';
comment on column target_cursors.target_id is 'targets.id';
comment on column target_cursors.repository_id is 'events.repository_id';
comment on column target_cursors.done_id is 'events.id of the last event that it has accepted, or that was given up.';
comment on column target_cursors.wanted_id is 'events.id of the last event that it is to hear of.';
comment on column target_cursors.attempts is 'How often the next event has failed.';
comment on column target_cursors.first_tried_at is 'When the next event was first tried, by our clock; null: not yet.';
comment on column target_cursors.retry_at is 'The next event is not tried before, by our clock.';
comment on column target_cursors.held_until is 'Until when one process alone sends these, by our clock.';
comment on column target_cursors.held_by is 'Which turn of which process that is.';

create table target_asks (
  id bigint generated always as identity primary key,
  target_id bigint not null references targets (id) on delete cascade,
  guid text not null,
  event text not null,
  action text,
  repository_id bigint,
  delivery_id uuid,
  payload bytea,
  redelivery boolean not null,
  asked_at timestamptz not null,
  held_until timestamptz
);
create index target_asks_target on target_asks (target_id, id);
comment on table target_asks is 'One row is one request that somebody asked for and that is not sent yet: a ping, a test, or a delivery once more. Each is tried once.';
comment on column target_asks.id is 'Our own id; the order in which they are sent.';
comment on column target_asks.target_id is 'targets.id';
comment on column target_asks.guid is 'The GUID that it is sent with.';
comment on column target_asks.event is 'The event''s name.';
comment on column target_asks.action is 'Its action; null: it has none.';
comment on column target_asks.repository_id is 'The repository that it concerns; null: none.';
comment on column target_asks.delivery_id is 'The delivery that holds the payload; null: payload does.';
comment on column target_asks.payload is 'The JSON document of a ping or a test; null: the delivery holds it.';
comment on column target_asks.redelivery is 'Whether it was sent before.';
comment on column target_asks.asked_at is 'When it was asked for, by our clock.';
comment on column target_asks.held_until is 'Until when one process alone tries it, by our clock.';

create table target_deliveries (
  target_id bigint not null references targets (id) on delete cascade,
  id bigint generated always as identity,
  guid text not null,
  event text not null,
  action text,
  repository_id bigint,
  delivery_id uuid,
  payload bytea,
  delivered_at timestamptz not null,
  redelivery boolean not null,
  duration_ms integer not null,
  status text not null,
  status_code integer not null,
  url text not null,
  request_headers json not null,
  response_headers json not null,
  response_body text,
  primary key (target_id, id)
);
create index target_deliveries_delivered on target_deliveries (delivered_at);
comment on table target_deliveries is 'One row is one request that was made of a target, and its answer.';
comment on column target_deliveries.target_id is 'targets.id';
comment on column target_deliveries.id is 'Our own id, which the hooks API shows.';
comment on column target_deliveries.guid is 'Upstream''s GUID of the event, the same in each attempt.';
comment on column target_deliveries.event is 'The event''s name.';
comment on column target_deliveries.action is 'Its action; null: it has none.';
comment on column target_deliveries.repository_id is 'The repository that it concerns; null: none.';
comment on column target_deliveries.delivery_id is 'The delivery that holds the payload, while it is kept; null: payload does.';
comment on column target_deliveries.payload is 'The JSON document of a ping or a test; null: the delivery holds it.';
comment on column target_deliveries.delivered_at is 'When the request began, by our clock.';
comment on column target_deliveries.redelivery is 'Whether an attempt came before it.';
comment on column target_deliveries.duration_ms is 'How long it took, in ms.';
comment on column target_deliveries.status is 'OK, or what went wrong, in the service''s words.';
comment on column target_deliveries.status_code is 'What the target answered; 502 where it could not be reached, 504 where it took too long.';
comment on column target_deliveries.url is 'Where it went.';
comment on column target_deliveries.request_headers is 'As they were sent.';
comment on column target_deliveries.response_headers is 'As they were received.';
comment on column target_deliveries.response_body is 'The beginning of the answer; null: there was none.';

-- Web processes read no webhook again, but for what was sent to a target.
create function sent_payload(target bigint, sent bigint) returns bytea
  language sql stable security definer set search_path = public as $$
    select coalesce(s.payload, d.payload) from target_deliveries s left join deliveries d on d.id = s.delivery_id
      where s.target_id = target and s.id = sent
  $$;
revoke all on function sent_payload(bigint, bigint) from public;

-- # Reading upstream

create table refresh_marks (
  kind text not null,
  repository_id bigint not null,
  key bigint not null,
  asked_at timestamptz not null,
  not_before timestamptz not null,
  keys text[],
  keys_at timestamptz,
  primary key (kind, repository_id, key)
);
create index refresh_marks_not_before on refresh_marks (not_before);
comment on table refresh_marks is 'One row is something about which the mirror must ask upstream: what we were told contradicts itself, or upstream did not know it yet.';
comment on column refresh_marks.kind is 'user, repository, label, milestone, issue, pull_request, issue_comment, review, review_comment, check_run, check_suite, status or release; mergeability: whether the open pull requests of a repository can be merged; checks: those of the heads of a repository; lists: the commits and files of its pull requests; releases: the list of its releases; refs: its branches and tags.';
comment on column refresh_marks.repository_id is 'The repository''s id at upstream; 0 for users and repositories.';
comment on column refresh_marks.key is 'Upstream''s id, or the number for issues and pull requests; the repository''s id for mergeability, checks, lists, releases and refs.';
comment on column refresh_marks.asked_at is 'When the newest reason to ask arose, by our clock.';
comment on column refresh_marks.not_before is 'When to ask, by our clock.';
comment on column refresh_marks.keys is 'The keys of the resource that are in doubt; null: anything of it may be.';
comment on column refresh_marks.keys_at is 'Up to which reason to ask the keys are complete. Earlier than asked_at: a process that knows no keys had a reason since.';

-- Upkeep asks what has changed since it last looked, and does not count all that there is: `ours` keeps the counts.
create table sweeps (
  repository_id bigint primary key,
  shown text,
  swept_at timestamptz,
  changed_at timestamptz,
  untold_at timestamptz,
  shown_at timestamptz not null,
  lists text,
  ours text,
  ours_revision bigint
);
comment on table sweeps is 'One row is what the newest sweep saw of a repository, and whether a catch-up is due because of it.';
comment on column sweeps.repository_id is 'Upstream''s id of the repository.';
comment on column sweeps.shown is 'What upstream showed of the repository itself, as JSON; null when it showed none.';
comment on column sweeps.swept_at is 'When the lists were asked for, by our clock; null until they were.';
comment on column sweeps.changed_at is 'When it was last found changed, by our clock; a catch-up that began later has read the change.';
comment on column sweeps.untold_at is 'When it was last found changed without a webhook that told of it, or a delivery was found missing, by our clock.';
comment on column sweeps.shown_at is 'When that was asked for, by our clock.';
comment on column sweeps.lists is 'What upstream showed of each list''s end: a digest of it, how many rows the list has and how many we had, as JSON; null until it was asked for.';
comment on column sweeps.ours is 'How many rows of each list we had at ours_revision, as JSON; null when some were too young for every replica to know.';
comment on column sweeps.ours_revision is 'The repository''s revision at which they were counted: as long as it has this one, they need not be counted again.';

create table validators (
  credential text not null,
  path text not null,
  etag text,
  last_modified text,
  next text,
  is_full boolean not null,
  seen_at timestamptz not null,
  body bytea,
  varies_by text,
  used_at timestamptz not null,
  made_for text,
  primary key (credential, path)
);
create index validators_path on validators (path);
create index validators_used on validators (used_at);
create index validators_bodies on validators (used_at) where body is not null;
-- It is compressed already.
alter table validators alter column body set storage external;
comment on table validators is 'One row is what upstream gave us to ask the same question again without cost.';
comment on column validators.credential is 'A fingerprint of the token that asked.';
comment on column validators.path is 'The file.';
comment on column validators.etag is 'The ETag of the answer.';
comment on column validators.last_modified is 'The Last-Modified of the answer.';
comment on column validators.next is 'The next page by the answer''s Link header.';
comment on column validators.is_full is 'Whether the page was full.';
comment on column validators.seen_at is 'When the newest observation was made, by our clock.';
comment on column validators.body is 'The answer''s body, gzipped, from which its ETag is computed for another token. Null: it cannot be.';
comment on column validators.varies_by is 'The request headers that the ETag covers beside the body, in order, with a blank between them.';
comment on column validators.used_at is 'When it was last of use, to the day, by our clock.';
comment on column validators.made_for is 'A fingerprint of the token string that the ETag is for, where the credential changes its own; null where it does not.';

create table graphql_sizes (
  repository_id bigint not null,
  query text not null,
  size integer not null,
  proved integer not null,
  is_retreating boolean not null,
  answered integer not null,
  wait integer not null,
  learnt_at timestamptz not null,
  primary key (repository_id, query)
);
comment on table graphql_sizes is 'One row is one GraphQL query that was too heavy for upstream in a repository, and how much of it upstream can bear. Without a row the query asks for all that it may.';
comment on column graphql_sizes.repository_id is 'Upstream''s id of the repository.';
comment on column graphql_sizes.query is 'pull pages: details page by page; single pulls: the same of named pull requests; mergeability.';
comment on column graphql_sizes.size is 'How many pull requests the next query asks for.';
comment on column graphql_sizes.proved is 'Up to this many are asked for again, twice as many each time, after a query was too heavy.';
comment on column graphql_sizes.is_retreating is 'The last query was too heavy.';
comment on column graphql_sizes.answered is 'How many queries of the proved size were answered since it was last changed or refused.';
comment on column graphql_sizes.wait is 'After so many answers a larger size is tried: twice as many each time that one is refused.';
comment on column graphql_sizes.learnt_at is 'When this last changed, by our clock.';

create table audits (
  repository_id bigint primary key,
  repair boolean not null,
  started_at timestamptz not null,
  finished_at timestamptz,
  phase text not null,
  cursor text,
  report json not null
);
comment on table audits is 'One row is the newest audit of a repository: a full comparison of mirror and upstream.';
comment on column audits.repository_id is 'Upstream''s id of the repository.';
comment on column audits.repair is 'Whether what it finds is repaired, or only reported.';
comment on column audits.started_at is 'When it began, by our clock.';
comment on column audits.finished_at is 'When it had compared everything, by our clock; null while it is under way.';
comment on column audits.phase is 'Which list it reads.';
comment on column audits.cursor is 'Where it goes on: a URL path or a GraphQL cursor; null before the phase''s first page.';
comment on column audits.report is 'What it found up to now.';

create table audit_pages (
  repository_id bigint not null,
  kind text not null,
  path text not null,
  keys bigint[] not null,
  fingerprint text,
  walked_at timestamptz not null,
  primary key (repository_id, kind, path)
);
comment on table audit_pages is 'One row is one page of a list as the newest audit saw it, so that the next can ask for it conditionally.';
comment on column audit_pages.repository_id is 'Upstream''s id of the repository.';
comment on column audit_pages.kind is 'What the list holds.';
comment on column audit_pages.path is 'The request''s path and query.';
comment on column audit_pages.keys is 'What stood on the page: ids, or numbers of issues and pull requests.';
comment on column audit_pages.fingerprint is 'Of the mirror''s rows when they were equal to the page; null when they were not, since a 304 would then prove nothing.';
comment on column audit_pages.walked_at is 'When an audit last passed it, by our clock.';

create table upstream_lacks (
  what text primary key,
  reason text not null,
  learnt_at timestamptz not null
);
comment on table upstream_lacks is 'One row is one thing that this upstream does not have, such as an older enterprise server. It is asked for again after a day.';
comment on column upstream_lacks.what is 'In words.';
comment on column upstream_lacks.reason is 'What upstream said when it was asked.';
comment on column upstream_lacks.learnt_at is 'When that was, by our clock.';

-- # Callers

create table api_tokens (
  hash text primary key,
  user_id bigint not null,
  can_write boolean not null,
  created_at timestamptz not null,
  last_used_at timestamptz,
  revoked_at timestamptz,
  repository_ids bigint[],
  owner_ids bigint[],
  hourly_limit integer,
  expires_at timestamptz,
  permissions text[]
    check (permissions <@ array['issues:read', 'issues:write', 'pull_requests:read', 'pull_requests:write', 'checks:read',
      'statuses:read', 'contents:read', 'hooks:write']),
  id text
);
comment on table api_tokens is 'One row is one token of our own, which a caller of the read API shows.';
comment on column api_tokens.hash is 'SHA-256 of the token, lower hex.';
comment on column api_tokens.user_id is 'users.id of who it answers as.';
comment on column api_tokens.can_write is 'Whether writes are passed through for it.';
comment on column api_tokens.created_at is 'When it was made, by our clock.';
comment on column api_tokens.last_used_at is 'When it was last shown, by our clock.';
comment on column api_tokens.revoked_at is 'When it was revoked.';
comment on column api_tokens.repository_ids is 'Upstream''s ids of the repositories that the token is for, beside the public ones; null together with owner_ids: all that is mirrored.';
comment on column api_tokens.owner_ids is 'Upstream''s ids of the accounts all of whose repositories the token is for.';
comment on column api_tokens.hourly_limit is 'Requests, and points of GraphQL, an hour for this token alone; 0 is no limit; null: what all callers of its user have together.';
comment on column api_tokens.expires_at is 'From then on it is refused, by our clock; null: never.';
comment on column api_tokens.permissions is 'What it is given beside the repositories themselves, in the words of fine-grained permissions; null: issues and pull requests, to write only if can_write says so.';
comment on column api_tokens.id is 'The beginning of the hash: names the token, and does not tell it.';

-- A worker makes and revokes tokens for an operator who asks for it on the page. It names a token by its id, so that it need
-- not read the hash.
create function name_token() returns trigger language plpgsql as $$
begin
  new.id := left(new.hash, 12);
  return new;
end
$$;
create trigger api_tokens_name before insert or update of hash, id on api_tokens for each row execute function name_token();

-- For good, whoever has the right to write the column.
create function refuse_unrevoking() returns trigger language plpgsql as $$
begin
  raise exception 'A revoked token stays revoked';
end
$$;
create trigger api_tokens_stay_revoked before update on api_tokens
  for each row when (old.revoked_at is distinct from new.revoked_at and old.revoked_at is not null)
  execute function refuse_unrevoking();

create table token_owners (
  fingerprint text primary key,
  user_id bigint not null,
  login text not null
);
comment on table token_owners is 'One row is one of our tokens for upstream and whose it is: the tokens of one user share one quota.';
comment on column token_owners.fingerprint is 'The fingerprint of the token.';
comment on column token_owners.user_id is 'Upstream''s id of the user.';
comment on column token_owners.login is 'The user''s login when it was asked.';

-- Unlogged: it is lost in a crash of Postgres, and not sent to its replicas: each row can be had again from upstream.
create unlogged table forwarded_answers (
  question text not null,
  shown_to text not null,
  id uuid not null,
  made_at timestamptz not null,
  used_at timestamptz not null,
  headers json not null,
  body bytea not null,
  varies_by text,
  bytes integer not null,
  mirror_repository_id bigint,
  mirror_shown_at timestamptz,
  primary key (question, shown_to)
);
create index forwarded_answers_used on forwarded_answers (used_at);
comment on table forwarded_answers is 'One row is one answer of upstream''s to a question that the mirror only passes on. Nobody is shown it unless upstream has shown it to their token.';
comment on column forwarded_answers.question is 'A digest of what was asked: path, query, media type and version. It holds nothing of who asked.';
comment on column forwarded_answers.shown_to is 'Empty: its ETag can be computed for every token. Otherwise the fingerprint of the token that alone has an ETag for it; mirror: the mirror''s own.';
comment on column forwarded_answers.id is 'Tells it from what was answered before: who was shown that was not shown this.';
comment on column forwarded_answers.made_at is 'When upstream answered it, by our clock.';
comment on column forwarded_answers.used_at is 'When it was last of use, to the hour, by our clock.';
comment on column forwarded_answers.headers is 'Of upstream''s answer, those that belong to the body.';
comment on column forwarded_answers.body is 'As upstream sent it.';
comment on column forwarded_answers.varies_by is 'Which request headers the ETag covers, as in validators; null: that is not known.';
comment on column forwarded_answers.bytes is 'What it counts for in FORWARD_CACHE_BYTES.';
comment on column forwarded_answers.mirror_repository_id is 'The repository below which upstream showed it to the mirror''s own credential; null: it did not.';
comment on column forwarded_answers.mirror_shown_at is 'When it last did so, by our clock.';

create table writes (
  id bigint generated always as identity primary key,
  begun_at timestamptz not null,
  ended_at timestamptz,
  token_of text not null check (token_of in ('own', 'upstream')),
  token text not null,
  user_id bigint not null,
  method text not null,
  route text,
  path text not null,
  repository_id bigint,
  outcome text not null default 'unknown' check (outcome in ('unknown', 'answered', 'unsent')),
  status integer,
  request_id text not null,
  upstream_request_id text,
  check ((outcome = 'answered') = (status is not null))
);
create index writes_begun on writes (begun_at);
comment on table writes is 'One row is one write that a caller had this mirror send to upstream.';
comment on column writes.id is 'In the order in which they began.';
comment on column writes.begun_at is 'When the row was made, before anything was sent, by our clock.';
comment on column writes.ended_at is 'When it was known what became of it, by our clock; null: it is under way, or its process ended first.';
comment on column writes.token_of is 'Whose token the caller showed: own (one of Tain''s) or upstream (one of upstream''s).';
comment on column writes.token is 'Names the token and does not tell it: the id of one of ours, the fingerprint of one of upstream''s.';
comment on column writes.user_id is 'users.id of whom the token answers as.';
comment on column writes.method is 'Of the request to upstream.';
comment on column writes.route is 'What the caller asked for: a path with names for its parts, or a mutation; null: a route that is only passed on.';
comment on column writes.path is 'What was written to, without a query. Of what was sent as a mutation: its subject''s path in REST.';
comment on column writes.repository_id is 'repositories.id; null: it names none that is known.';
comment on column writes.outcome is 'answered: upstream answered; unsent: upstream has seen nothing of it; unknown: sent, perhaps, and the answer did not arrive.';
comment on column writes.status is 'Of upstream''s answer.';
comment on column writes.request_id is 'The X-GitHub-Request-Id of our answer, which our log has.';
comment on column writes.upstream_request_id is 'The X-GitHub-Request-Id of upstream''s answer.';

-- # Work

create table exclusive_work (
  name text primary key,
  holder uuid not null,
  held_until timestamptz not null
);
comment on table exclusive_work is 'Work under way that must not run twice at once, such as an audit of a repository. The row is deleted at its end.';
comment on column exclusive_work.name is 'What is done.';
comment on column exclusive_work.holder is 'Who does it; each run has its own.';
comment on column exclusive_work.held_until is 'Renewed while it is under way. After this another process may take it: its holder has gone or stands still.';

create table upkeep (
  task text primary key,
  done_until timestamptz not null
);
comment on table upkeep is 'One row is one task of upkeep, and up to when it has looked.';
comment on column upkeep.task is 'hooks: which webhooks have told of something.';
comment on column upkeep.done_until is 'What came before this need not be looked at again, by our clock.';

-- What fails is left alone for a while, by each process alike.
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
comment on column problems.task is 'What is done: select, token, installation, backfill, part, catch-up, sweep, audit, refresh, hook or events.';
comment on column problems.key is 'What it is done to: a wish, a credential, an installation, a repository, a part of one, a repository''s hook or a mark.';
comment on column problems.repository_id is 'Upstream''s id of the repository that it concerns; null: none, or several.';
comment on column problems.cause is 'absent: upstream does not show it; refused: upstream will not; unavailable: upstream failed; unread: upstream is a mirror that has still to read it; own: we did.';
comment on column problems.problem is 'What is wrong, in words.';
comment on column problems.failures is 'How often it failed in a row.';
comment on column problems.since is 'When the first of these began, by our clock.';
comment on column problems.failed_at is 'When the last of these ended, by our clock.';
comment on column problems.next_at is 'When it is tried again, by our clock.';
comment on column problems.credentials is 'A digest of the credentials that it failed with: with others it is tried at once.';
