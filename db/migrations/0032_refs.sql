-- Oldest Tain that works beside this: 0.2.0
comment on column repository_syncs.mirrors is 'What is mirrored beside issues and pull requests: checks, commits, releases, refs.';
comment on column refresh_marks.kind is 'user, repository, label, milestone, issue, pull_request, issue_comment, review, review_comment, check_run, check_suite, status or release; mergeability: whether the open pull requests of a repository can be merged; checks: those of the heads of a repository; lists: the commits and files of its pull requests; releases: the list of its releases; refs: its branches and tags.';
comment on column refresh_marks.key is 'Upstream''s id, or the number for issues and pull requests; the repository''s id for mergeability, checks, lists, releases and refs.';

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
