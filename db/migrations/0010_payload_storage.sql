-- Oldest Tain that works beside this: 0.2.0
-- Payloads are written once, read once and kept for days. pglz takes longer than all else that storing one does; where the
-- server has no lz4 they stay as they came.
do $$
begin
  if exists (select from pg_settings where name = 'default_toast_compression' and 'lz4' = any (enumvals)) then
    alter table deliveries alter column payload set compression lz4;
  else
    alter table deliveries alter column payload set storage external;
  end if;
end
$$;
