-- Oldest Tain that works beside this: 0.2.0
create table eras (
  is_one boolean primary key default true,
  timeline text not null,
  id uuid not null,
  constraint eras_one check (is_one)
);
comment on table eras is 'One row: which history of the database this is. A server that was promoted goes on in another, in which commits may be missing that somebody has seen.';
comment on column eras.is_one is 'There is one row.';
comment on column eras.timeline is 'The timeline on which the primary writes its log, as the names of its files begin.';
comment on column eras.id is 'Unlike that of any other history, also where two servers were promoted to timelines of one number.';

-- Says that a new history has begun, if it has. Of several who say so at once, the first names it.
create function begin_era() returns void language sql as $$
  insert into eras (timeline, id) values (left(pg_walfile_name(pg_current_wal_flush_lsn()), 8), gen_random_uuid())
    on conflict (is_one) do update set timeline = excluded.timeline, id = excluded.id where eras.timeline <> excluded.timeline
$$;
select begin_era();
