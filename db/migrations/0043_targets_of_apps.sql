-- Oldest Tain that works beside this: 0.2.0
-- A worker from before this migration names no installation in what it sends.
alter table targets add column installation_id bigint;
comment on column targets.installation_id is 'Upstream''s id of the installation that is named in what is sent, for the App whose URL the target is; null: none.';
