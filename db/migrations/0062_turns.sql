-- Oldest Tain that works beside this: 0.3.0
-- Unlogged, both: their rows mean nothing after a crash of Postgres, and nothing on a replica.
create unlogged table turns (
  purpose text not null,
  slot integer not null,
  primary key (purpose, slot)
);
comment on table turns is 'One row is one thing at which transactions take turns: one at a time locks the row. Only Tain''s own roles may, while Postgres lets every login take advisory locks.';
comment on column turns.purpose is 'What the turn is for, such as write.';
comment on column turns.slot is 'By what the turn is told apart, hashed: things of one slot only wait for each other.';

create unlogged table listeners (
  pid integer primary key
);
comment on table listeners is 'One row is one connection that hears what is announced. It is deleted when the connection ends in order.';
comment on column listeners.pid is 'Its process of Postgres. The next listener deletes the rows of processes that are gone.';

alter table selections add column excepted_id bigint;
comment on column selections.excepted_id is 'Of an exception, !owner/name: the id of its repository, which stays excepted under another name. Null: it was not seen yet.';
