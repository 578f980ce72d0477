-- Oldest Tain that works beside this: 0.2.0
-- Who writes an event into the log must not fail because a target is removed at that moment. What it writes for it is pruned.
alter table target_cursors drop constraint target_cursors_target_id_fkey;
