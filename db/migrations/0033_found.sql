-- Oldest Tain that works beside this: 0.2.0
-- A worker from before this migration applies webhooks without noting here what they tell: an event may be made of it, too.
create table found_changes (
  repository_id bigint not null,
  kind text not null,
  key bigint not null,
  aspect text not null,
  was json,
  found_at timestamptz,
  heard_at timestamptz,
  made json,
  made_until timestamptz,
  made_at timestamptz,
  overtaken boolean not null default false,
  primary key (repository_id, kind, key, aspect),
  constraint found_changes_was check (found_at is null or was is not null),
  constraint found_changes_made check (made is null or made_at is not null)
);
create index found_changes_found on found_changes (found_at) where found_at is not null;

comment on table found_changes is 'One row is one thing of a resource that was found changed and that no webhook has told of: an event is made of it, unless the webhook comes first. Then it says what that event told, for webhooks that come late.';
comment on column found_changes.repository_id is 'The repository''s id at upstream.';
comment on column found_changes.kind is 'The kind of the resource, as in refresh_marks.';
comment on column found_changes.key is 'Its id at upstream, or its number where it is an issue or a pull request.';
comment on column found_changes.aspect is 'What of it: exists, a key such as title, or a member of a list such as label 7.';
comment on column found_changes.was is 'What others were last told of it, or the mirror had before. A text stands as upstream wrote it.';
comment on column found_changes.found_at is 'Since when a change waits for its webhook, by our clock; null: none does.';
comment on column found_changes.heard_at is 'When a webhook last told of it, by our clock, while this row was here.';
comment on column found_changes.made is 'The values that the last event told that was made of it; null: none was.';
comment on column found_changes.made_until is 'The updated_at of the resource as that event showed it; null: it has none.';
comment on column found_changes.made_at is 'When that event was made, by our clock; null: none was.';
comment on column found_changes.overtaken is 'Whether a webhook has told of something newer since.';

alter table events add column is_made boolean not null default false;
comment on column events.is_made is 'Whether we made it of a change that no webhook told of. Its payload has the form of upstream''s.';
