-- Oldest Tain that works beside this: 0.2.0
comment on column problems.task is 'What is done: select, token, installation, backfill, part, catch-up, sweep, audit, refresh, hook or events.';
