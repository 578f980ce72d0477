-- Oldest Tain that works beside this: 0.2.0
-- A job that began before a repository was removed must not bring it back by what it writes at its end. Only a wish does,
-- and a wish says when it was made.
create function refuse_move() returns trigger language plpgsql as $$
begin
  raise exception 'repository % was removed: it does not become % without a new wish', old.repository_id, new.state
    using errcode = 'check_violation', constraint = 'repository_syncs_move', table = 'repository_syncs';
end
$$;
create trigger repository_syncs_move before update of state on repository_syncs for each row
  when (old.state = 'gone' and new.state <> 'gone' and (new.state <> 'backfilling' or new.added_at = old.added_at))
  execute function refuse_move();
update repository_syncs set problem = 'no reason was kept' where state = 'paused' and problem is null;
alter table repository_syncs add constraint repository_syncs_pause check (state <> 'paused' or problem is not null);
comment on column repository_syncs.added_at is 'When it was asked for, the last time if it was removed in between, by our clock.';
