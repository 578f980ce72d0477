-- Oldest Tain that works beside this: 0.3.0
-- Unlogged, both: their rows mean nothing after a crash of Postgres, and nothing on a replica.
create unlogged table turns (
  purpose text not null,
  slot integer not null,
  primary key (purpose, slot)
);
comment on table turns is 'One row is one thing at which transactions take turns: one at a time locks the row. Only Tain''s own roles may, while Postgres lets every login take advisory locks.';
comment on column turns.purpose is 'What the turn is for, such as write.';
comment on column turns.slot is 'By what the turn is told apart, hashed: things of one slot only wait for each other.';

create unlogged table listeners (
  pid integer primary key
);
comment on table listeners is 'One row is one connection that hears what is announced. It is deleted when the connection ends in order.';
comment on column listeners.pid is 'Its process of Postgres. The next listener deletes the rows of processes that are gone.';

-- Roles that may read some repositories only are told no commit of another repository, and no draft: REST shows the one
-- to those who see that repository, the other to those who may push. A document's own repository stands in it as \u0001.
create or replace view tain_v1.issue_events with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    e.issue_number as number,
    e.id,
    i.is_pull_request,
    e.event,
    u.login as actor,
    e.actor_id,
    a.login as subject,
    e.label,
    e.milestone,
    e.title_from,
    e.title_to,
    case when (select has_table_privilege(current_user, 'issues'::regclass, 'select'))
      or strpos(e.document::text, '"commit_url":"\u0001/commits/') > 0 then e.commit_id end as commit_id,
    e.created_at,
    l.read_at
  from shown_repositories r
  join issue_events e on e.repository_id = r.id and e.deleted_at is null
  join issues i on i.repository_id = e.repository_id and i.number = e.issue_number and i.deleted_at is null
  left join issue_event_lists l on l.repository_id = e.repository_id
  left join users u on u.id = e.actor_id
  left join users a on a.id = e.subject_id;
comment on column tain_v1.issue_events.commit_id is 'Of referenced, merged, and closed by a commit: the commit. To a role of some repositories null where it is of another.';

create or replace view tain_v1.releases with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    t.id,
    t.tag_name,
    t.name,
    t.draft,
    t.prerelease,
    u.login as author,
    t.target_commitish,
    t.created_at,
    t.published_at,
    case when not t.draft then r.html_url || '/releases/tag/' || t.tag_name end as html_url
  from shown_repositories r
  join releases t on t.repository_id = r.id and t.deleted_at is null
    and (not t.draft or (select has_table_privilege(current_user, 'issues'::regclass, 'select')))
  left join users u on u.id = t.author_id;
comment on view tain_v1.releases is 'One row is one release. With MIRROR=releases. A role of some repositories sees no drafts.';

alter table selections add column excepted_id bigint;
comment on column selections.excepted_id is 'Of an exception, !owner/name: the id of its repository, which stays excepted under another name. Null: it was not seen yet.';
