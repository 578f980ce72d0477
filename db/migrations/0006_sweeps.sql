-- Oldest Tain that works beside this: 0.2.0
-- What the newest sweep saw is asked again at no cost, so nothing is lost.
truncate sweeps;
alter table sweeps alter column shown drop not null;
alter table sweeps alter column swept_at drop not null;
alter table sweeps add column shown_at timestamptz not null;
alter table sweeps add column lists text;

comment on column sweeps.shown is 'What upstream showed of the repository itself, as JSON; null when it showed none.';
comment on column sweeps.shown_at is 'When that was asked for, by our clock.';
comment on column sweeps.lists is 'What upstream showed of each list''s end: a digest of it, how many rows the list has and how many we had, as JSON; null until it was asked for.';
comment on column sweeps.swept_at is 'When the lists were asked for, by our clock; null until they were.';
