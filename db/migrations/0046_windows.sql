-- Oldest Tain that works beside this: 0.2.0
alter table backfill_phases add column window_place text;
comment on column backfill_phases.window_place is 'The page within the window of a long list that begins at the cursor, as JSON; null: the list is read page by page.';
