-- Oldest Tain that works beside this: 0.1.0
alter table validators
  add column body bytea,
  add column varies_by text,
  add column used_at timestamptz not null default now();
-- It is compressed already.
alter table validators alter column body set storage external;
alter table validators alter column used_at drop default;
create index validators_path on validators (path);

comment on column validators.body is 'The answer''s body, gzipped, from which its ETag is computed for another token. Null: it cannot be.';
comment on column validators.varies_by is 'The request headers that the ETag covers beside the body, in order, with a blank between them.';
comment on column validators.used_at is 'When it was last of use, to the day, by our clock.';
