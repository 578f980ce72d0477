-- Oldest Tain that works beside this: 0.3.0
alter table sweeps add column others_untold_at timestamptz;
comment on column sweeps.others_untold_at is 'When a third of the repositories looked at with it had last lost webhooks within the hour, by our clock: what it lost itself may show in no look.';
