-- Oldest Tain that works beside this: 0.2.0
alter table mirrored_lists add column told_at timestamptz;
alter table mirrored_lists drop constraint mirrored_lists_list_check;
alter table mirrored_lists add constraint mirrored_lists_list_check check (list in ('commits', 'files', 'threads'));
comment on table mirrored_lists is 'One row is one list that is held whole: the commits, files or review threads of one pull request.';
comment on column mirrored_lists.list is 'commits, files or threads.';
comment on column mirrored_lists.told_at is 'When something said last that it has changed and its version has not, by our clock: replicas lag behind that moment. Null: nothing did.';
comment on column repository_syncs.mirrors is 'What is mirrored beside issues and pull requests: checks, commits, refs, releases, threads.';

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
