-- Oldest Tain that works beside this: 0.3.0
-- One statement at a time.
create unique index concurrently if not exists api_tokens_names on api_tokens (name) where revoked_at is null;
