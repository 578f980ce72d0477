-- Postgres 18 has uuidv7() by itself; older ones get this function of the same name before the first migration, which asks for
-- it. Like Postgres's own it begins with the time, so keys of one moment lie side by side in the index. Where a dump of it comes
-- to Postgres 18, it stays beside Postgres's own, and does the same.
create or replace function uuidv7() returns uuid language sql volatile parallel safe
  begin atomic
    -- 48 bits of milliseconds, the version (7), 12 bits of the millisecond's fraction; the rest of a random UUID is kept.
    select encode(overlay(uuid_send(gen_random_uuid()) placing
        substring(int8send(micros / 1000) from 3) || int2send((x'7000'::integer + micros % 1000 * 4096 / 1000)::smallint)
        from 1), 'hex')::uuid
      from (select (extract(epoch from clock_timestamp()) * 1000000)::bigint) as now(micros);
  end;
comment on function uuidv7() is 'A UUID of version 7, as Postgres 18 makes it.';
