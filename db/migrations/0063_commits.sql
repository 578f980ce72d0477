-- Oldest Tain that works beside this: 0.3.0
comment on column refresh_marks.kind is 'user, repository, label, milestone, issue, pull_request, issue_comment, issue_event, review, review_comment, check_run, check_suite, status, release, deployment, deployment_status, workflow, workflow_run or workflow_job; mergeability: whether the open pull requests of a repository can be merged; checks: those of the heads of a repository; lists: the commits and files of its pull requests; commits: the history of its default branch; releases, deployments, actions, issue-events: the lists of these; refs: its branches and tags.';

create table commits (
  repository_id bigint not null,
  sha text not null,
  position integer not null,
  node_id text,
  message text,
  author_id bigint,
  committer_id bigint,
  authored_at timestamptz,
  committed_at timestamptz,
  parents text[] not null,
  document json not null,
  detail json,
  primary key (repository_id, sha)
);
create index commits_position on commits (repository_id, position);
comment on table commits is 'One row is one commit of the default branch of one repository.';
comment on column commits.repository_id is 'The repository''s id at upstream.';
comment on column commits.sha is 'Its hash.';
comment on column commits.position is 'Its place in the history. The newest commit has the least.';
comment on column commits.node_id is 'Upstream''s global (GraphQL) id.';
comment on column commits.message is 'What its maker wrote of it.';
comment on column commits.author_id is 'The account that wrote it. Null: upstream knows none.';
comment on column commits.committer_id is 'The account that committed it. Null: upstream knows none.';
comment on column commits.authored_at is 'When it was written, by its author''s clock.';
comment on column commits.committed_at is 'When it was committed, by its committer''s clock.';
comment on column commits.parents is 'The hashes of the commits before it.';
comment on column commits.document is 'Everything upstream''s list sent, as JSON. Strings that begin with a control character are marks: \u0001 this repository''s API address, \u0002 the API''s, \u0003 this repository''s page, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column commits.detail is 'What upstream sends of a single commit: its statistics and files. Null: not read; only those of the newest are. Empty: upstream shows its files in pages.';

create table commit_lists (
  repository_id bigint primary key,
  head_sha text,
  total integer,
  read_at timestamptz,
  reading_sha text,
  detailed_sha text,
  constraint commit_lists_total_check check (head_sha is null or total is not null)
);
comment on table commit_lists is 'One row is the history of the default branch of one repository, as far as it is here.';
comment on column commit_lists.repository_id is 'The repository''s id at upstream.';
comment on column commit_lists.head_sha is 'The commit that the history leads to. Null: it is not here.';
comment on column commit_lists.total is 'How many commits the history has at upstream. Those beyond the newest ones are not here.';
comment on column commit_lists.read_at is 'When it was last read, by our clock.';
comment on column commit_lists.reading_sha is 'The commit from which on it is being read anew. Null: it is not.';
comment on column commit_lists.detailed_sha is 'The last commit for which the files of the newest commits were all read.';

create view tain_v1.commits with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    c.sha,
    row_number() over (partition by c.repository_id order by c.position) as place,
    c.message,
    a.login as author,
    c.author_id,
    m.login as committer,
    c.authored_at,
    c.committed_at,
    c.parents,
    r.html_url || '/commit/' || c.sha as html_url,
    l.read_at
  from shown_repositories r
  join commit_lists l on l.repository_id = r.id and l.head_sha is not null
  join commits c on c.repository_id = r.id
  left join users a on a.id = c.author_id
  left join users m on m.id = c.committer_id;
comment on view tain_v1.commits is 'One row is one commit of the default branch, of its newest ones. With MIRROR=commits,refs.';
comment on column tain_v1.commits.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.commits.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.commits.sha is 'Its hash.';
comment on column tain_v1.commits.place is 'Its place in the history, the newest first: 1, 2 …';
comment on column tain_v1.commits.message is 'What its maker wrote of it.';
comment on column tain_v1.commits.author is 'Who wrote it: the login. Null: upstream knows no account.';
comment on column tain_v1.commits.author_id is 'Who wrote it: the account''s id.';
comment on column tain_v1.commits.committer is 'Who committed it: the login.';
comment on column tain_v1.commits.authored_at is 'When it was written, by its author''s clock.';
comment on column tain_v1.commits.committed_at is 'When it was committed, by its committer''s clock.';
comment on column tain_v1.commits.parents is 'The hashes of the commits before it: two or more of a merge.';
comment on column tain_v1.commits.html_url is 'Its page at upstream.';
comment on column tain_v1.commits.read_at is 'When the history was last read, by our clock: what was pushed later is missing.';
