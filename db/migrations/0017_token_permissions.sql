-- Oldest Tain that works beside this: 0.2.0
-- A process from before this migration shows such a token issues and pull requests, and passes no write on for it.
alter table api_tokens add column permissions text[]
  check (permissions <@ array['issues:read', 'issues:write', 'pull_requests:read', 'pull_requests:write']);
comment on column api_tokens.permissions is 'What it is given beside the repositories themselves, in the words of fine-grained permissions; null: issues and pull requests, to write only if can_write says so.';
