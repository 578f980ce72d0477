-- Oldest Tain that works beside this: 0.2.0
alter table refresh_marks add column keys text[], add column keys_at timestamptz;
comment on column refresh_marks.keys is 'The keys of the resource that are in doubt; null: anything of it may be.';
comment on column refresh_marks.keys_at is 'Up to which reason to ask the keys are complete. Earlier than asked_at: a process that knows no keys had a reason since.';
