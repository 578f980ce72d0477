-- Oldest Tain that works beside this: 0.3.0
alter table api_tokens add column name text;
alter table api_tokens add constraint api_tokens_name_check check (name ~ '^[a-z0-9][a-z0-9-]{0,38}$');
comment on column api_tokens.name is 'What an operator called it, such as ci-bot. Another may be called so once it is revoked. Null: it has no name.';
