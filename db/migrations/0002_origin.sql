-- Oldest Tain that works beside this: 0.1.0
create table origin (
  singleton boolean primary key default true,
  upstream text not null,
  claimed_at timestamptz not null,
  constraint origin_one_row check (singleton)
);

comment on table origin is 'The one row says what this database mirrors, so that no start mixes two upstreams in it. No row: no start has said so yet.';
comment on column origin.singleton is 'Always true: there is one row at most.';
comment on column origin.upstream is 'The REST address of upstream, or "simulator" for the demonstration, whose world begins anew at each start.';
comment on column origin.claimed_at is 'When it was said, by our clock.';
