-- Oldest Tain that works beside this: 0.3.0
alter table found_changes add column is_late boolean not null default false;
comment on column found_changes.is_late is 'Whether the last webhook that told of it came behind newer ones. Who goes by times and who goes by arrival then know different values, so an event is made even of the value that it told.';
