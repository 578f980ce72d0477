-- Oldest Tain that works beside this: 0.2.0
-- Upkeep asks what has changed since it last looked, and does not count all that there is.
alter table sweeps add column ours text;
alter table sweeps add column ours_revision bigint;
comment on column sweeps.ours is 'How many rows of each list we had at ours_revision, as JSON; null when some were too young for every replica to know.';
comment on column sweeps.ours_revision is 'The repository''s revision at which they were counted: as long as it has this one, they need not be counted again.';

create table upkeep (
  task text primary key,
  done_until timestamptz not null
);
comment on table upkeep is 'One row is one task of upkeep, and up to when it has looked.';
comment on column upkeep.task is 'hooks: which webhooks have told of something.';
comment on column upkeep.done_until is 'What came before this need not be looked at again, by our clock.';

-- A webhook is kept here from its first delivery on; until it is checked, null says that it never was.
alter table hook_checks alter column checked_until drop not null;

