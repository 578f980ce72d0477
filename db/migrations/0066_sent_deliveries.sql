-- Oldest Tain that works beside this: 0.3.0
-- One statement at a time.
create index concurrently if not exists target_deliveries_delivery on target_deliveries (delivery_id);
