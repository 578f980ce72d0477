-- Oldest Tain that works beside this: 0.2.0
comment on column repository_syncs.mirrors is 'What is mirrored beside issues and pull requests: checks, commits, releases.';

comment on column refresh_marks.kind is 'user, repository, label, milestone, issue, pull_request, issue_comment, review, review_comment, check_run, check_suite, status or release; mergeability: whether the open pull requests of a repository can be merged; checks: those of the heads of a repository; lists: the commits and files of its pull requests; releases: the list of its releases.';
comment on column refresh_marks.key is 'Upstream''s id, or the number for issues and pull requests; the repository''s id for mergeability, checks, lists and releases.';

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
