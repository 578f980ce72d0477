-- Oldest Tain that works beside this: 0.2.0
-- Subscriptions of this version are not told what workers from before it write into the log.
alter table events add column number integer, add column is_pull_request boolean;
comment on column events.number is 'The number of the issue or pull request that it is about; null: it is about none.';
comment on column events.is_pull_request is 'Whether that is a pull request; null: it is about none.';
