-- Oldest Tain that works beside this: 0.2.0
-- A process from before this migration does not say of an event whether its repository was private.
alter table events add column was_private boolean;
comment on column events.was_private is 'Whether its repository was private when it was logged, by the mirror''s word or the payload''s: then it is for those who have a right there. Null: a process from before this column logged it.';
