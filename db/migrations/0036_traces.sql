-- Oldest Tain that works beside this: 0.2.0
-- What is done with a delivery later, by other processes, goes on with the trace that it arrived in.
alter table deliveries add column traceparent text;
comment on column deliveries.traceparent is 'Names the trace that it arrived in (W3C Trace Context). Null: it is not told.';
