-- Oldest Tain that works beside this: 0.2.0
-- A process from before this migration writes the log only while there is a target, so the feed lacks what it applies.
create index events_placed on events (id) where id is not null;
comment on table events is 'The ordered log. One row is one event as others hear of it, written by the transaction that settled its delivery, and kept as long as the delivery is.';

create table event_log (
  is_one boolean primary key default true,
  pruned_id bigint not null,
  constraint event_log_one check (is_one)
);
comment on table event_log is 'One row at most: what the log no longer has. Without a row nothing was pruned since its first event.';
comment on column event_log.is_one is 'There is one row.';
comment on column event_log.pruned_id is 'events.id of the latest event that was pruned. Who has read up to there has missed nothing.';

-- Web processes read webhooks again only as events that others are told of.
create function event_payloads(places bigint[], most_bytes bigint) returns table (id bigint, payload bytea)
  language sql stable security definer set search_path = public as $$
    select p.id, p.payload from (
      select e.id, d.payload, row_number() over going as place, sum(octet_length(d.payload)) over going as bytes
        from events e join deliveries d on d.id = e.delivery_id where e.id = any(places) window going as (order by e.id)
    ) p where p.place = 1 or p.bytes <= most_bytes order by p.id
  $$;
revoke all on function event_payloads(bigint[], bigint) from public;
