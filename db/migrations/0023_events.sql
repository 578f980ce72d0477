-- Oldest Tain that works beside this: 0.2.0
-- A process from before this migration applies deliveries without telling of them: targets hear of what newer workers apply.
create sequence event_place;
create table events (
  repository_id bigint not null,
  guid text not null,
  id bigint,
  delivery_id uuid not null,
  event text not null,
  action text,
  owner_id bigint,
  received_at timestamptz not null,
  primary key (repository_id, guid),
  unique (repository_id, id)
);
create index events_delivery on events (delivery_id);
create index events_held on events (repository_id) where id is null;

comment on table events is 'The ordered log. One row is one event as targets hear of it, written by the transaction that settled its delivery. Nothing is written while there is no target.';
comment on column events.repository_id is 'The repository''s id at upstream; 0: it concerns none.';
comment on column events.guid is 'Upstream''s GUID: one event has one at all hooks, and is told once.';
comment on column events.id is 'Its place in the log, given in the order of receipt; null: a delivery that came before it is not settled yet.';
comment on column events.delivery_id is 'The delivery that holds the payload.';
comment on column events.event is 'The event''s name, as upstream sent it.';
comment on column events.action is 'Its action; null: it has none.';
comment on column events.owner_id is 'users.id of the repository''s owner, or of the organization that it concerns; null: neither is known.';
comment on column events.received_at is 'When its delivery arrived, by our clock.';

create table targets (
  id bigint generated always as identity primary key,
  scope text not null,
  scope_id bigint not null,
  made_by text not null,
  url text not null,
  content_type text not null,
  insecure_ssl boolean not null,
  secret bytea,
  events text[] not null,
  active boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  accepted_at timestamptz,
  disabled_at timestamptz,
  problem text,
  constraint targets_scope check (scope in ('repository', 'organization', 'everything')),
  constraint targets_made_by check (made_by in ('api', 'operator')),
  constraint targets_content_type check (content_type in ('json', 'form')),
  constraint targets_disabled check ((disabled_at is null) = (problem is null))
);
create index targets_scope on targets (scope, scope_id);

comment on table targets is 'One row is one address that events are sent to: a hook that somebody registered here, or one that an operator named.';
comment on column targets.id is 'Our own id, which the hooks API shows.';
comment on column targets.scope is 'What it hears of: a repository, an organization with all its repositories, or everything that is mirrored.';
comment on column targets.scope_id is 'Upstream''s id of the repository or organization; 0 for everything.';
comment on column targets.made_by is 'api: a caller registered it. operator: by the command line.';
comment on column targets.url is 'Where requests go.';
comment on column targets.content_type is 'json, or form: the document is the field payload.';
comment on column targets.insecure_ssl is 'Whether its certificate is not checked.';
comment on column targets.secret is 'What requests are signed with, encrypted by a key made of WEBHOOK_SECRET; null: they are not signed.';
comment on column targets.events is 'The events that it wants; * is all.';
comment on column targets.active is 'Whether its owner wants anything at present. What happens meanwhile is not sent later.';
comment on column targets.created_at is 'When it was made, by our clock.';
comment on column targets.updated_at is 'When its owner last changed it, by our clock.';
comment on column targets.accepted_at is 'When it last accepted a request, to the minute, by our clock.';
comment on column targets.disabled_at is 'Since when nothing is sent because it accepted nothing for long; what happens meanwhile waits. Null: it is not disabled.';
comment on column targets.problem is 'Why it is disabled, in words.';

create table target_cursors (
  target_id bigint not null references targets (id) on delete cascade,
  repository_id bigint not null,
  done_id bigint not null,
  wanted_id bigint not null,
  attempts integer not null default 0,
  first_tried_at timestamptz,
  retry_at timestamptz,
  held_until timestamptz,
  held_by uuid,
  primary key (target_id, repository_id)
);
create index target_cursors_pending on target_cursors (target_id, done_id) where wanted_id > done_id;

comment on table target_cursors is 'One row is how far a target has come with the events of one repository. They are sent one after the other.';
comment on column target_cursors.target_id is 'targets.id';
comment on column target_cursors.repository_id is 'events.repository_id';
comment on column target_cursors.done_id is 'events.id of the last event that it has accepted, or that was given up.';
comment on column target_cursors.wanted_id is 'events.id of the last event that it is to hear of.';
comment on column target_cursors.attempts is 'How often the next event has failed.';
comment on column target_cursors.first_tried_at is 'When the next event was first tried, by our clock; null: not yet.';
comment on column target_cursors.retry_at is 'The next event is not tried before, by our clock.';
comment on column target_cursors.held_until is 'Until when one process alone sends these, by our clock.';
comment on column target_cursors.held_by is 'Which turn of which process that is.';

create table target_asks (
  id bigint generated always as identity primary key,
  target_id bigint not null references targets (id) on delete cascade,
  guid text not null,
  event text not null,
  action text,
  repository_id bigint,
  delivery_id uuid,
  payload bytea,
  redelivery boolean not null,
  asked_at timestamptz not null,
  held_until timestamptz
);
create index target_asks_target on target_asks (target_id, id);

comment on table target_asks is 'One row is one request that somebody asked for and that is not sent yet: a ping, a test, or a delivery once more. Each is tried once.';
comment on column target_asks.id is 'Our own id; the order in which they are sent.';
comment on column target_asks.target_id is 'targets.id';
comment on column target_asks.guid is 'The GUID that it is sent with.';
comment on column target_asks.event is 'The event''s name.';
comment on column target_asks.action is 'Its action; null: it has none.';
comment on column target_asks.repository_id is 'The repository that it concerns; null: none.';
comment on column target_asks.delivery_id is 'The delivery that holds the payload; null: payload does.';
comment on column target_asks.payload is 'The JSON document of a ping or a test; null: the delivery holds it.';
comment on column target_asks.redelivery is 'Whether it was sent before.';
comment on column target_asks.asked_at is 'When it was asked for, by our clock.';
comment on column target_asks.held_until is 'Until when one process alone tries it, by our clock.';

create table target_deliveries (
  target_id bigint not null references targets (id) on delete cascade,
  id bigint generated always as identity,
  guid text not null,
  event text not null,
  action text,
  repository_id bigint,
  delivery_id uuid,
  payload bytea,
  delivered_at timestamptz not null,
  redelivery boolean not null,
  duration_ms integer not null,
  status text not null,
  status_code integer not null,
  url text not null,
  request_headers json not null,
  response_headers json not null,
  response_body text,
  primary key (target_id, id)
);
create index target_deliveries_delivered on target_deliveries (delivered_at);

comment on table target_deliveries is 'One row is one request that was made of a target, and its answer.';
comment on column target_deliveries.target_id is 'targets.id';
comment on column target_deliveries.id is 'Our own id, which the hooks API shows.';
comment on column target_deliveries.guid is 'Upstream''s GUID of the event, the same in each attempt.';
comment on column target_deliveries.event is 'The event''s name.';
comment on column target_deliveries.action is 'Its action; null: it has none.';
comment on column target_deliveries.repository_id is 'The repository that it concerns; null: none.';
comment on column target_deliveries.delivery_id is 'The delivery that holds the payload, while it is kept; null: payload does.';
comment on column target_deliveries.payload is 'The JSON document of a ping or a test; null: the delivery holds it.';
comment on column target_deliveries.delivered_at is 'When the request began, by our clock.';
comment on column target_deliveries.redelivery is 'Whether an attempt came before it.';
comment on column target_deliveries.duration_ms is 'How long it took, in ms.';
comment on column target_deliveries.status is 'OK, or what went wrong, in the service''s words.';
comment on column target_deliveries.status_code is 'What the target answered; 502 where it could not be reached, 504 where it took too long.';
comment on column target_deliveries.url is 'Where it went.';
comment on column target_deliveries.request_headers is 'As they were sent.';
comment on column target_deliveries.response_headers is 'As they were received.';
comment on column target_deliveries.response_body is 'The beginning of the answer; null: there was none.';

-- Web processes read no webhook again, but for what was sent to a target.
create function sent_payload(target bigint, sent bigint) returns bytea
  language sql stable security definer set search_path = public as $$
    select coalesce(s.payload, d.payload) from target_deliveries s left join deliveries d on d.id = s.delivery_id
      where s.target_id = target and s.id = sent
  $$;
revoke all on function sent_payload(bigint, bigint) from public;

alter table api_tokens drop constraint api_tokens_permissions_check;
alter table api_tokens add constraint api_tokens_permissions_check check
  (permissions <@ array['issues:read', 'issues:write', 'pull_requests:read', 'pull_requests:write', 'hooks:write']);
