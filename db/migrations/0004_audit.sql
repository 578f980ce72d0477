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
