-- Oldest Tain that works beside this: 0.3.0
comment on column repository_syncs.mirrors is 'What is mirrored beside issues and pull requests: actions, checks, commits, deployments, issue-events, people, refs, releases, threads.';
comment on column refresh_marks.kind is 'user, repository, label, milestone, issue, pull_request, issue_comment, issue_event, review, review_comment, check_run, check_suite, status, release, deployment, deployment_status, workflow, workflow_run or workflow_job; mergeability: whether the open pull requests of a repository can be merged; checks: those of the heads of a repository; lists: the commits and files of its pull requests; commits: the history of its default branch; releases, deployments, actions, issue-events: the lists of these; refs: its branches and tags; people: the lists of people and teams, also those of the organisation that owns it.';

create table people_lists (
  repository_id bigint not null,
  owner_id bigint not null,
  list text not null,
  home_id bigint not null,
  heard_at timestamptz,
  read_at timestamptz,
  refused_at timestamptz,
  primary key (repository_id, owner_id, list),
  constraint people_lists_owner_check check ((repository_id = 0) <> (owner_id = 0))
);
create index people_lists_home on people_lists (home_id, repository_id);
comment on table people_lists is 'One row is one list of people or teams: of a repository, an organisation or a team.';
comment on column people_lists.repository_id is 'The repository''s id at upstream. 0: the list is of an organisation or a team.';
comment on column people_lists.owner_id is 'The id of the organisation or team at upstream. 0: the list is of a repository.';
comment on column people_lists.list is 'Of a repository: assignees (who can be assigned), collaborators or teams. Of an organisation: organization teams, members, owners or public members. Of a team: team members.';
comment on column people_lists.home_id is 'The account that owned the repository when the list was begun, or the organisation.';
comment on column people_lists.heard_at is 'When a webhook last told of a change, by our clock.';
comment on column people_lists.read_at is 'When it was last read to its end, by our clock. Null: it is not here.';
comment on column people_lists.refused_at is 'When upstream last refused it to the mirror, by our clock. Null: it did not.';

create table listed_people (
  repository_id bigint not null,
  owner_id bigint not null,
  list text not null,
  position integer not null,
  id bigint not null,
  slug text,
  role text,
  is_secret boolean,
  document json not null,
  own json,
  primary key (repository_id, owner_id, list, position)
);
create index listed_people_id on listed_people (id, list);
comment on table listed_people is 'One row is one person or team in one list, as upstream listed it.';
comment on column listed_people.repository_id is 'As in people_lists.';
comment on column listed_people.owner_id is 'As in people_lists.';
comment on column listed_people.list is 'As in people_lists.';
comment on column listed_people.position is 'The place in upstream''s list, from 0 on. Places of rows without an id are left out.';
comment on column listed_people.id is 'Upstream''s id of the account, or of the team.';
comment on column listed_people.slug is 'Of a team: its name in addresses.';
comment on column listed_people.role is 'Of a person: the role in the repository or team. Of a team: the permission that it gives.';
comment on column listed_people.is_secret is 'Of a team: whether only its people and the organisation''s owners see it.';
comment on column listed_people.document is 'The team, or the account under the key user, as JSON. Strings that begin with a control character are marks: \u0002 the API''s address, \u0005 a shared resource (kind, id, shape), \u0006 an escape.';
comment on column listed_people.own is 'What the list says of a person beside the account: permissions, role_name, role, inherited.';

create view tain_v1.collaborators with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    u.login,
    p.id as user_id,
    p.role,
    l.read_at
  from shown_repositories r
  join people_lists l on l.repository_id = r.id and l.owner_id = 0 and l.list = 'collaborators' and l.read_at is not null
  join listed_people p on p.repository_id = l.repository_id and p.owner_id = 0 and p.list = l.list
  join users u on u.id = p.id;
comment on view tain_v1.collaborators is 'One row is one person with access to a repository of their own, by a team or by the organisation. With MIRROR=people.';
comment on column tain_v1.collaborators.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.collaborators.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.collaborators.login is 'The person''s login.';
comment on column tain_v1.collaborators.user_id is 'The account''s id.';
comment on column tain_v1.collaborators.role is 'The highest role from all sources: admin, maintain, write, triage, read, or one of the organisation''s own.';
comment on column tain_v1.collaborators.read_at is 'When the list was last read, by our clock.';

create view tain_v1.repository_teams with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    p.slug as team,
    p.id as team_id,
    p.role as permission,
    p.is_secret,
    l.read_at
  from shown_repositories r
  join people_lists l on l.repository_id = r.id and l.owner_id = 0 and l.list = 'teams' and l.read_at is not null
  join listed_people p on p.repository_id = l.repository_id and p.owner_id = 0 and p.list = l.list;
comment on view tain_v1.repository_teams is 'One row is one team with access to a repository. With MIRROR=people.';
comment on column tain_v1.repository_teams.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.repository_teams.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.repository_teams.team is 'The team''s name in addresses.';
comment on column tain_v1.repository_teams.team_id is 'The team''s id.';
comment on column tain_v1.repository_teams.permission is 'What the team gives its people: admin, maintain, push, triage, pull, or a role of the organisation''s own.';
comment on column tain_v1.repository_teams.is_secret is 'Whether only its people and the organisation''s owners see the team.';
comment on column tain_v1.repository_teams.read_at is 'When the list was last read, by our clock.';

-- No repository stands in these two, so they are for those alone who may read all.
create view tain_v1.organization_members with (security_barrier) as
  select o.login as organization,
    l.owner_id as organization_id,
    u.login,
    p.id as user_id,
    exists (select from listed_people a where a.repository_id = 0 and a.owner_id = l.owner_id and a.list = 'owners' and a.id = p.id) as is_owner,
    exists (select from listed_people a where a.repository_id = 0 and a.owner_id = l.owner_id and a.list = 'public members' and a.id = p.id) as is_public,
    l.read_at
  from people_lists l
  join users o on o.id = l.owner_id
  join listed_people p on p.repository_id = 0 and p.owner_id = l.owner_id and p.list = l.list
  join users u on u.id = p.id
  where l.repository_id = 0 and l.list = 'members' and l.read_at is not null
    and (select has_table_privilege(current_user, 'issues'::regclass, 'select'));
comment on view tain_v1.organization_members is 'One row is one member of an organisation that owns a mirrored repository. With MIRROR=people.';
comment on column tain_v1.organization_members.organization is 'The organisation''s login.';
comment on column tain_v1.organization_members.organization_id is 'The organisation''s id.';
comment on column tain_v1.organization_members.login is 'The member''s login.';
comment on column tain_v1.organization_members.user_id is 'The account''s id.';
comment on column tain_v1.organization_members.is_owner is 'Whether the member is one of the organisation''s owners.';
comment on column tain_v1.organization_members.is_public is 'Whether everybody may know that they are a member.';
comment on column tain_v1.organization_members.read_at is 'When the list was last read, by our clock.';

create view tain_v1.team_members with (security_barrier) as
  select o.login as organization,
    t.slug as team,
    t.id as team_id,
    t.is_secret,
    u.login,
    p.id as user_id,
    p.role,
    l.read_at
  from people_lists l
  join listed_people t on t.repository_id = 0 and t.owner_id = l.home_id and t.list = 'organization teams' and t.id = l.owner_id
  join users o on o.id = l.home_id
  join listed_people p on p.repository_id = 0 and p.owner_id = l.owner_id and p.list = l.list
  join users u on u.id = p.id
  where l.repository_id = 0 and l.list = 'team members' and l.read_at is not null
    and (select has_table_privilege(current_user, 'issues'::regclass, 'select'));
comment on view tain_v1.team_members is 'One row is one person in a team, or in one of its child teams. With MIRROR=people.';
comment on column tain_v1.team_members.organization is 'The login of the team''s organisation.';
comment on column tain_v1.team_members.team is 'The team''s name in addresses.';
comment on column tain_v1.team_members.team_id is 'The team''s id.';
comment on column tain_v1.team_members.is_secret is 'Whether only its people and the organisation''s owners see the team.';
comment on column tain_v1.team_members.login is 'The person''s login.';
comment on column tain_v1.team_members.user_id is 'The account''s id.';
comment on column tain_v1.team_members.role is 'member or maintainer.';
comment on column tain_v1.team_members.read_at is 'When the list was last read, by our clock.';
