-- Oldest Tain that works beside this: 0.2.0
-- One statement at a time.
-- What upkeep looks up. Mirrors made by 0019 before it left them to this one have them already.
create index concurrently if not exists validators_used on validators (used_at);
create index concurrently if not exists validators_bodies on validators (used_at) where body is not null;
create index concurrently if not exists deliveries_failed on deliveries (received_at) where status = 'failed';
