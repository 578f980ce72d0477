-- Oldest Tain that works beside this: 0.2.0
-- One statement at a time.
-- Repositories are divided over workers by ranges of slots; see src/sync/shards.ts.
create index concurrently if not exists repositories_slot on repositories ((id % 1024));
create index concurrently if not exists repository_syncs_slot on repository_syncs ((repository_id % 1024));
create index concurrently if not exists sweeps_slot on sweeps ((repository_id % 1024));
create index concurrently if not exists audits_slot on audits ((repository_id % 1024));
create index concurrently if not exists hook_checks_slot on hook_checks ((repository_id % 1024));
