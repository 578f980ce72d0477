-- Oldest Tain that works beside this: 0.2.0
alter table api_tokens
  add column repository_ids bigint[],
  add column owner_ids bigint[],
  add column hourly_limit integer;

comment on column api_tokens.repository_ids is 'Upstream''s ids of the repositories that the token is for, beside the public ones; null together with owner_ids: all that is mirrored.';
comment on column api_tokens.owner_ids is 'Upstream''s ids of the accounts all of whose repositories the token is for.';
comment on column api_tokens.hourly_limit is 'Requests, and points of GraphQL, an hour for this token alone; 0 is no limit; null: what all callers of its user have together.';
