-- Oldest Tain that works beside this: 0.2.0
-- A process from before this migration makes targets without saying who did, and such a target is never paused.
alter table targets add column maker_id bigint, add column token_of text, add column token text, add column paused_why text;
alter table targets add constraint targets_token check ((token_of is null) = (token is null) and token_of in ('own', 'upstream'));
comment on column targets.maker_id is 'users.id of whom the caller answered as who made it, or who resumed it last; null: an operator did, or a process from before this column.';
comment on column targets.token_of is 'Whose token that caller showed: own (one of Tain''s) or upstream (one of upstream''s).';
comment on column targets.token is 'Names that token and does not tell it: the id of one of ours, the fingerprint of one of upstream''s.';
comment on column targets.paused_why is 'Why the mirror has paused it, in words: its maker may register hooks no more, or it is beyond our bounds. Null: it has not.';

-- Callers could register hooks of any size. What is beyond the bounds of today is cut, and waits for its owner.
update targets set active = false,
    paused_why = 'It was larger than hooks may be: set its URL, events and secret again',
    events = case when cardinality(events) > 200 then events[1:200] else events end,
    url = left(url, 2048),
    secret = case when octet_length(secret) > 8192 then null else secret end
  where made_by = 'api' and (cardinality(events) > 200 or length(url) > 2048 or octet_length(secret) > 8192);

-- A worker reads no token, but for whether targets still have a maker who may register them.
create function lapsed_targets(at timestamptz) returns table (target_id bigint, why text)
  language sql stable security definer set search_path = public as $$
    select t.id, case
        when k.id is null then 'The token that made it is not known any more'
        when k.revoked_at is not null then 'The token that made it was revoked'
        when k.expires_at <= at then 'The token that made it has ended'
        else 'The token that made it may register no such hook any more' end
      from targets t left join api_tokens k on k.id = t.token
      where t.active and t.token_of = 'own' and (k.id is null or k.revoked_at is not null or coalesce(k.expires_at <= at, false)
        or not coalesce('hooks:write' = any(k.permissions), false)
        or ((k.repository_ids is not null or k.owner_ids is not null) and not (t.scope = 'repository' and (
          coalesce(t.scope_id = any(k.repository_ids), false)
          or exists (select from repositories r where r.id = t.scope_id and r.owner_id = any(k.owner_ids))))))
  $$;
revoke all on function lapsed_targets(timestamptz) from public;
