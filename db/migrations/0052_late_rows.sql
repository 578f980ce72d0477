-- Oldest Tain that works beside this: 0.2.0
alter table sweeps add column late text;
comment on column sweeps.late is 'Rows at the ends of lists that the mirror did not hold when a sweep met them, and since when no catch-up has explained them, as JSON; null when it holds all.';
