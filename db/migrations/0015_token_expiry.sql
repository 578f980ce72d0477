-- Oldest Tain that works beside this: 0.2.0
-- A token may be for a while only. A process from before this migration takes it beyond its end.
alter table api_tokens add column expires_at timestamptz;
comment on column api_tokens.expires_at is 'From then on it is refused, by our clock; null: never.';
