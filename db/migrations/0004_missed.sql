-- Oldest Tain that works beside this: 0.1.0
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

create table sweeps (
  repository_id bigint primary key,
  shown text not null,
  swept_at timestamptz not null,
  changed_at timestamptz,
  untold_at timestamptz
);

comment on table sweeps is 'One row is what the newest sweep saw of a repository, and whether a catch-up is due because of it.';
comment on column sweeps.repository_id is 'Upstream''s id of the repository.';
comment on column sweeps.shown is 'What upstream showed that moves when the repository does, as JSON.';
comment on column sweeps.swept_at is 'When it was asked for, by our clock.';
comment on column sweeps.changed_at is 'When it was last found changed, by our clock; a catch-up that began later has read the change.';
comment on column sweeps.untold_at is 'When it was last found changed without a webhook that told of it, or a delivery was found missing, by our clock.';

create table hook_checks (
  repository_id bigint not null,
  hook_id bigint not null,
  checked_until timestamptz not null,
  missed bigint not null default 0,
  primary key (repository_id, hook_id)
);

comment on table hook_checks is 'One row is one of our webhooks at upstream and up to where its list of deliveries has been compared with the inbox.';
comment on column hook_checks.repository_id is 'Upstream''s id of the repository.';
comment on column hook_checks.hook_id is 'Upstream''s id of the webhook; 0 when it shows us none of ours, last asked at checked_until.';
comment on column hook_checks.checked_until is 'Deliveries up to here, by upstream''s clock, were asked for again if they were missing.';
comment on column hook_checks.missed is 'How many were missing, over all checks.';

-- Which webhooks told of a repository lately.
create index deliveries_repository on deliveries (repository_id, received_at);
