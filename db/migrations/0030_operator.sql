-- Oldest Tain that works beside this: 0.2.0
-- A worker makes and revokes tokens for an operator who asks for it on the page. It names a token by its id, so that it need
-- not read the hash. The column is filled by the database, also for processes from before this migration. A generated one would
-- write the table anew under a lock.
alter table api_tokens add column id text;
comment on column api_tokens.id is 'The beginning of the hash: names the token, and does not tell it.';

create function name_token() returns trigger language plpgsql as $$
begin
  new.id := left(new.hash, 12);
  return new;
end
$$;
create trigger api_tokens_name before insert or update of hash, id on api_tokens for each row execute function name_token();
update api_tokens set id = left(hash, 12);

-- For good, whoever has the right to write the column.
create function refuse_unrevoking() returns trigger language plpgsql as $$
begin
  raise exception 'A revoked token stays revoked';
end
$$;
create trigger api_tokens_stay_revoked before update on api_tokens
  for each row when (old.revoked_at is distinct from new.revoked_at and old.revoked_at is not null)
  execute function refuse_unrevoking();
