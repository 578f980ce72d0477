-- Oldest Tain that works beside this: 0.2.0
alter table repository_syncs add column parts_missing text;
comment on column repository_syncs.parts_missing is 'The parts that upstream did not show when it last confirmed the repository, as answers name them: labels, pulls …; null: none.';
