-- Oldest Tain that works beside this: 0.2.0
alter table repository_syncs add column parts_changed_at timestamptz;
comment on column repository_syncs.parts_changed_at is 'When it last changed what is mirrored of it beside issues and pull requests: what upstream made before is no news.';
