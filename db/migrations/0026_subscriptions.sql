-- Oldest Tain that works beside this: 0.2.0
-- A process from before this migration sends every target what upstream sent, byte for byte.
create table hook_subscriptions (
  repository_id bigint primary key,
  url text not null,
  events text[] not null,
  asked_at timestamptz not null
);

comment on table hook_subscriptions is 'One row is the hook that we registered for a repository at upstream, and what it was last told to send.';
comment on column hook_subscriptions.repository_id is 'Upstream''s id of the repository.';
comment on column hook_subscriptions.url is 'Where it sends to.';
comment on column hook_subscriptions.events is 'What it was told to send: what the mirror follows and what targets want; * is all.';
comment on column hook_subscriptions.asked_at is 'When upstream was told, by our clock.';

alter table targets add column rewrite_to text;
comment on column targets.rewrite_to is 'The mirror''s API address, which stands in what is sent for upstream''s; null: what upstream sent is sent, byte for byte.';
