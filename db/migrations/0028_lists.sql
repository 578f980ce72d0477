-- Oldest Tain that works beside this: 0.2.0
alter table repository_syncs add column lists_confirmed_at timestamptz, add column base_pushed_at timestamptz;
comment on column repository_syncs.mirrors is 'What is mirrored beside issues and pull requests: checks, commits.';
comment on column repository_syncs.lists_confirmed_at is 'When upstream was last asked how long the lists of open pull requests are, by our clock. Null: never.';
comment on column repository_syncs.base_pushed_at is 'When a push to the base of an open pull request was last heard of, by our clock: its lists may have become shorter. Null: never.';

create table mirrored_lists (
  repository_id bigint not null,
  list text not null check (list in ('commits', 'files')),
  number integer not null,
  version text not null,
  heard_at timestamptz not null,
  read_at timestamptz,
  primary key (repository_id, list, number)
);
comment on table mirrored_lists is 'One row is one list that is held whole: the commits or files of one pull request.';
comment on column mirrored_lists.repository_id is 'The repository''s id at upstream.';
comment on column mirrored_lists.list is 'commits or files.';
comment on column mirrored_lists.number is 'The number of the pull request.';
comment on column mirrored_lists.version is 'What it is the list of: the head''s hash and the base branch. It counts only while the pull request has these.';
comment on column mirrored_lists.heard_at is 'When we first heard of that version, by our clock: replicas lag behind that moment.';
comment on column mirrored_lists.read_at is 'When it was last read to its end, by our clock. Null: it has to be read.';

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
