-- Oldest Tain that works beside this: 0.2.0
create table exclusive_work (
  name text primary key,
  holder uuid not null,
  held_until timestamptz not null
);
comment on table exclusive_work is 'Work under way that must not run twice at once, such as an audit of a repository. The row is deleted at its end.';
comment on column exclusive_work.name is 'What is done.';
comment on column exclusive_work.holder is 'Who does it; each run has its own.';
comment on column exclusive_work.held_until is 'Renewed while it is under way. After this another process may take it: its holder has gone or stands still.';
