-- Oldest Tain that works beside this: 0.2.0
-- A process from before this migration passes writes on without a row.
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
