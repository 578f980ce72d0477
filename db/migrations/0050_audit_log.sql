-- Oldest Tain that works beside this: 0.2.0
-- A process from before this migration acts without a row.
create table audit_log (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  last_at timestamptz,
  times integer not null default 1 check (times > 0),
  actor_kind text not null check (actor_kind in ('terminal', 'operator', 'own', 'upstream', 'stranger')),
  actor text,
  user_id bigint,
  address text,
  action text not null check (action ~ '^[a-z][a-z_-]*(\.[a-z][a-z_-]*)*$'),
  object text,
  arguments text[] not null default '{}',
  outcome text not null default 'unknown' check (outcome in ('unknown', 'done', 'failed', 'refused')),
  request_id text
);
create index audit_log_at on audit_log (at, id);
create index audit_log_kind on audit_log (split_part(action, '.', 1), id);
comment on table audit_log is 'One row is one act that changed who may do what here or gave a secret away, or some refusals of one minute.';
comment on column audit_log.id is 'In the order in which they began.';
comment on column audit_log.at is 'When it began, by our clock; of several refusals the first.';
comment on column audit_log.last_at is 'When the last of several refusals was; null: it is one act.';
comment on column audit_log.times is 'How many refusals the row stands for.';
comment on column audit_log.actor_kind is 'terminal: a command in a terminal; operator: the operator''s page; own, upstream: a caller with such a token; stranger: nobody that is known.';
comment on column audit_log.actor is 'The machine''s user, the page''s session, or the id or fingerprint of the token. Never a token.';
comment on column audit_log.user_id is 'users.id of whom the token answers as.';
comment on column audit_log.address is 'Where the request came from; null: it is not known.';
comment on column audit_log.action is 'What was done. Its first word is the kind: command, hook, token, session or refusal.';
comment on column audit_log.object is 'What it was done to, by its id.';
comment on column audit_log.arguments is 'Of a command, as they were written, without secrets.';
comment on column audit_log.outcome is 'unknown: it is under way, or its process ended first.';
comment on column audit_log.request_id is 'The X-GitHub-Request-Id of our answer, which our log has.';
