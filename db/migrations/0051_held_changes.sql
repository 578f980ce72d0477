-- Oldest Tain that works beside this: 0.2.0
alter table sweeps add column held_until timestamptz;
alter table sweeps add column held_at timestamptz;
alter table sweeps add column unheld text;
comment on column sweeps.held_until is 'By upstream''s clock: the mirror holds every change up to this moment that upstream''s newest changes show; null until they were compared.';
comment on column sweeps.held_at is 'When that was last found, by our clock.';
comment on column sweeps.unheld is 'What the last comparison found that the mirror does not hold, as JSON; null when it holds all.';

alter table repository_syncs add column caught_up_at timestamptz;
update repository_syncs set caught_up_at = confirmed_at;
comment on column repository_syncs.caught_up_at is 'When the last catch-up began, by our clock; confirmed_at may be later, where a sweep has found that the mirror holds all changes.';
