-- Oldest Tain that works beside this: 0.2.0
create table upstream_lacks (
  what text primary key,
  reason text not null,
  learnt_at timestamptz not null
);
comment on table upstream_lacks is 'One row is one thing that this upstream does not have, such as an older enterprise server. It is asked for again after a day.';
comment on column upstream_lacks.what is 'In words.';
comment on column upstream_lacks.reason is 'What upstream said when it was asked.';
comment on column upstream_lacks.learnt_at is 'When that was, by our clock.';
comment on column problems.task is 'What is done: select, token, installation, backfill, part, catch-up, sweep, audit, refresh or hook.';
comment on column problems.key is 'What it is done to: a wish, a credential, an installation, a repository, a part of one, a repository''s hook or a mark.';
