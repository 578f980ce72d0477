-- Oldest Tain that works beside this: 0.3.0
create table reader_repositories (
  repository_id bigint not null,
  role text not null,
  primary key (repository_id, role)
);
comment on table reader_repositories is 'One row is one repository that one role of Postgres may read, through the views of tain_v1.';
comment on column reader_repositories.repository_id is 'The repository''s id at upstream.';
comment on column reader_repositories.role is 'The role''s name.';

-- For people who query the mirror. The schema is not called tain: Postgres looks for names in the schema of the user's own
-- name first, and many databases are owned by a user tain.
create schema if not exists tain_v1;
comment on schema tain_v1 is 'What the mirror holds, for readers: rows that exist, of repositories that are mirrored. Columns are only added here; what would break a query becomes tain_v2.';

-- Whoever may read the tables sees all repositories. Any other role sees those that reader_repositories names for it, or
-- for a role that it is a member of. The views of tain_v1 are built on this one, and are security barriers: no condition of
-- a query is told of a row that its role does not see.
create view shown_repositories as
  select r.id, r.full_name, r.html_url
    from repositories r join repository_syncs s on s.repository_id = r.id and s.state <> 'gone'
    where r.deleted_at is null and ((select has_table_privilege(current_user, 'issues'::regclass, 'select'))
      or r.id = any(array(select g.repository_id from reader_repositories g join pg_catalog.pg_roles o on o.rolname = g.role
        where pg_has_role(current_user, o.oid, 'usage'))));
comment on view shown_repositories is 'One row is one mirrored repository that the present role may read.';
comment on column shown_repositories.id is 'The repository''s id at upstream.';
comment on column shown_repositories.full_name is 'Its name: owner/name.';
comment on column shown_repositories.html_url is 'Its page at upstream.';

create view tain_v1.repositories with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    u.login as owner,
    t.name,
    t.description,
    t.private,
    t.visibility,
    t.fork,
    t.archived,
    t.default_branch,
    t.language,
    t.stargazers_count,
    t.forks_count,
    t.created_at,
    t.updated_at,
    t.pushed_at,
    t.html_url,
    s.state as mirror_state,
    s.problem as mirror_problem,
    s.confirmed_at
  from shown_repositories r
  join repositories t on t.id = r.id
  join repository_syncs s on s.repository_id = r.id
  left join users u on u.id = t.owner_id;
comment on view tain_v1.repositories is 'One row is one mirrored repository.';
comment on column tain_v1.repositories.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.repositories.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.repositories.owner is 'The owner''s login. Null: not known.';
comment on column tain_v1.repositories.name is 'The name without the owner.';
comment on column tain_v1.repositories.description is 'What its owner wrote of it.';
comment on column tain_v1.repositories.private is 'Whether it is private.';
comment on column tain_v1.repositories.visibility is 'public, private or internal. Null: not known.';
comment on column tain_v1.repositories.fork is 'Whether it is a fork.';
comment on column tain_v1.repositories.archived is 'Whether it is archived.';
comment on column tain_v1.repositories.default_branch is 'The name of its default branch.';
comment on column tain_v1.repositories.language is 'Its main language.';
comment on column tain_v1.repositories.stargazers_count is 'How many have starred it.';
comment on column tain_v1.repositories.forks_count is 'How many forks it has.';
comment on column tain_v1.repositories.created_at is 'When it was made, by upstream''s clock.';
comment on column tain_v1.repositories.updated_at is 'When it last changed, by upstream''s clock.';
comment on column tain_v1.repositories.pushed_at is 'When somebody last pushed, by upstream''s clock.';
comment on column tain_v1.repositories.html_url is 'Its page at upstream.';
comment on column tain_v1.repositories.mirror_state is 'backfilling: its first copy is being made, so rows are missing; live; paused: upstream does not show it now.';
comment on column tain_v1.repositories.mirror_problem is 'What is wrong with the mirror of it, in words. Null: nothing.';
comment on column tain_v1.repositories.confirmed_at is 'When upstream last confirmed all that is held of it, by our clock. Null: not yet.';

create view tain_v1.issues with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    i.number,
    i.id,
    i.title,
    i.body,
    i.state,
    i.state_reason,
    u.login as author,
    i.user_id as author_id,
    u.type as author_type,
    i.author_association,
    array(select l.name from issue_labels il
      join labels l on l.repository_id = il.repository_id and l.id = il.label_id and l.deleted_at is null
      where il.repository_id = i.repository_id and il.number = i.number order by l.name) as labels,
    array(select a.login from issue_assignees ia join users a on a.id = ia.user_id
      where ia.repository_id = i.repository_id and ia.number = i.number order by a.login) as assignees,
    m.title as milestone,
    i.comments,
    i.locked,
    c.login as closed_by,
    i.created_at,
    i.updated_at,
    i.closed_at,
    r.html_url || '/issues/' || i.number as html_url
  from shown_repositories r
  join issues i on i.repository_id = r.id and i.deleted_at is null and i.id is not null and not i.is_pull_request
  left join users u on u.id = i.user_id
  left join users c on c.id = i.closed_by_id
  left join milestones m on m.repository_id = i.repository_id and m.id = i.milestone_id and m.deleted_at is null;
comment on view tain_v1.issues is 'One row is one issue. Pull requests are in tain_v1.pull_requests.';
comment on column tain_v1.issues.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.issues.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.issues.number is 'Its number in the repository.';
comment on column tain_v1.issues.id is 'Upstream''s id.';
comment on column tain_v1.issues.title is 'The title.';
comment on column tain_v1.issues.body is 'The text, as Markdown.';
comment on column tain_v1.issues.state is 'open or closed.';
comment on column tain_v1.issues.state_reason is 'Why it has its state: completed, not_planned, duplicate or reopened. Null: not known.';
comment on column tain_v1.issues.author is 'Who opened it: the login. Null: the account is gone.';
comment on column tain_v1.issues.author_id is 'Who opened it: the account''s id.';
comment on column tain_v1.issues.author_type is 'Who opened it: User, Bot or Organization. Null: not known.';
comment on column tain_v1.issues.author_association is 'What its author is to the repository, such as MEMBER.';
comment on column tain_v1.issues.labels is 'The names of its labels.';
comment on column tain_v1.issues.assignees is 'The logins of those who are assigned to it.';
comment on column tain_v1.issues.milestone is 'The title of its milestone. Null: it has none.';
comment on column tain_v1.issues.comments is 'How many comments it has, as upstream counts.';
comment on column tain_v1.issues.locked is 'Whether only collaborators may comment.';
comment on column tain_v1.issues.closed_by is 'Who closed it: the login. Null: it is open, or that is not known.';
comment on column tain_v1.issues.created_at is 'When it was opened, by upstream''s clock.';
comment on column tain_v1.issues.updated_at is 'When it last changed, by upstream''s clock.';
comment on column tain_v1.issues.closed_at is 'When it was closed, by upstream''s clock. Null: it is open.';
comment on column tain_v1.issues.html_url is 'Its page at upstream.';

create view tain_v1.pull_requests with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    p.number,
    p.id,
    p.title,
    p.body,
    p.state,
    p.draft,
    u.login as author,
    p.user_id as author_id,
    u.type as author_type,
    p.author_association,
    array(select l.name from issue_labels il
      join labels l on l.repository_id = il.repository_id and l.id = il.label_id and l.deleted_at is null
      where il.repository_id = p.repository_id and il.number = p.number order by l.name) as labels,
    array(select a.login from issue_assignees ia join users a on a.id = ia.user_id
      where ia.repository_id = p.repository_id and ia.number = p.number order by a.login) as assignees,
    m.title as milestone,
    p.head_label,
    p.head_ref,
    p.head_sha,
    p.base_ref,
    p.base_sha,
    p.merge_commit_sha,
    g.login as merged_by,
    p.mergeable_state,
    p.comments,
    p.review_comments,
    p.commits,
    p.additions,
    p.deletions,
    p.changed_files,
    p.created_at,
    p.updated_at,
    p.closed_at,
    p.merged_at,
    r.html_url || '/pull/' || p.number as html_url
  from shown_repositories r
  join pull_requests p on p.repository_id = r.id and p.deleted_at is null and p.id is not null
  left join users u on u.id = p.user_id
  left join users g on g.id = p.merged_by_id
  left join milestones m on m.repository_id = p.repository_id and m.id = p.milestone_id and m.deleted_at is null;
comment on view tain_v1.pull_requests is 'One row is one pull request.';
comment on column tain_v1.pull_requests.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.pull_requests.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.pull_requests.number is 'Its number in the repository.';
comment on column tain_v1.pull_requests.id is 'Upstream''s id.';
comment on column tain_v1.pull_requests.title is 'The title.';
comment on column tain_v1.pull_requests.body is 'The text, as Markdown.';
comment on column tain_v1.pull_requests.state is 'open or closed.';
comment on column tain_v1.pull_requests.draft is 'Whether it is a draft. Null: not known.';
comment on column tain_v1.pull_requests.author is 'Who opened it: the login. Null: the account is gone.';
comment on column tain_v1.pull_requests.author_id is 'Who opened it: the account''s id.';
comment on column tain_v1.pull_requests.author_type is 'Who opened it: User, Bot or Organization. Null: not known.';
comment on column tain_v1.pull_requests.author_association is 'What its author is to the repository, such as MEMBER.';
comment on column tain_v1.pull_requests.labels is 'The names of its labels.';
comment on column tain_v1.pull_requests.assignees is 'The logins of those who are assigned to it.';
comment on column tain_v1.pull_requests.milestone is 'The title of its milestone. Null: it has none.';
comment on column tain_v1.pull_requests.head_label is 'Whose branch is to be merged: owner:branch.';
comment on column tain_v1.pull_requests.head_ref is 'The branch that is to be merged.';
comment on column tain_v1.pull_requests.head_sha is 'That branch''s last commit.';
comment on column tain_v1.pull_requests.base_ref is 'The branch that it is to be merged into.';
comment on column tain_v1.pull_requests.base_sha is 'That branch''s commit, as upstream tells it.';
comment on column tain_v1.pull_requests.merge_commit_sha is 'The commit that merged it, or the trial of one.';
comment on column tain_v1.pull_requests.merged_by is 'Who merged it: the login. Null: nobody, or that is not known.';
comment on column tain_v1.pull_requests.mergeable_state is 'Whether it can be merged, as upstream says: clean, dirty, blocked … Null: not known.';
comment on column tain_v1.pull_requests.comments is 'How many comments it has, as upstream counts. Null: not known.';
comment on column tain_v1.pull_requests.review_comments is 'How many comments on lines it has, as upstream counts. Null: not known.';
comment on column tain_v1.pull_requests.commits is 'How many commits it has. Null: not known.';
comment on column tain_v1.pull_requests.additions is 'How many lines it adds. Null: not known.';
comment on column tain_v1.pull_requests.deletions is 'How many lines it deletes. Null: not known.';
comment on column tain_v1.pull_requests.changed_files is 'How many files it changes. Null: not known.';
comment on column tain_v1.pull_requests.created_at is 'When it was opened, by upstream''s clock.';
comment on column tain_v1.pull_requests.updated_at is 'When it last changed, by upstream''s clock.';
comment on column tain_v1.pull_requests.closed_at is 'When it was closed or merged, by upstream''s clock. Null: it is open.';
comment on column tain_v1.pull_requests.merged_at is 'When it was merged, by upstream''s clock. Null: it is not.';
comment on column tain_v1.pull_requests.html_url is 'Its page at upstream.';

create view tain_v1.comments with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    c.issue_number as number,
    c.id,
    i.is_pull_request,
    u.login as author,
    c.user_id as author_id,
    u.type as author_type,
    c.author_association,
    c.body,
    c.created_at,
    c.updated_at,
    r.html_url || case when i.is_pull_request then '/pull/' else '/issues/' end || c.issue_number || '#issuecomment-' || c.id as html_url
  from shown_repositories r
  join issue_comments c on c.repository_id = r.id and c.deleted_at is null
  left join users u on u.id = c.user_id
  left join issues i on i.repository_id = c.repository_id and i.number = c.issue_number;
comment on view tain_v1.comments is 'One row is one comment on an issue or a pull request.';
comment on column tain_v1.comments.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.comments.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.comments.number is 'The number of the issue or pull request.';
comment on column tain_v1.comments.id is 'Upstream''s id.';
comment on column tain_v1.comments.is_pull_request is 'Whether it is on a pull request. Null: not known yet.';
comment on column tain_v1.comments.author is 'Who wrote it: the login. Null: the account is gone.';
comment on column tain_v1.comments.author_id is 'Who wrote it: the account''s id.';
comment on column tain_v1.comments.author_type is 'Who wrote it: User, Bot or Organization. Null: not known.';
comment on column tain_v1.comments.author_association is 'What its author is to the repository, such as MEMBER.';
comment on column tain_v1.comments.body is 'The text, as Markdown.';
comment on column tain_v1.comments.created_at is 'When it was made, by upstream''s clock.';
comment on column tain_v1.comments.updated_at is 'When it last changed, by upstream''s clock.';
comment on column tain_v1.comments.html_url is 'Its place at upstream.';

create view tain_v1.reviews with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    v.pull_number as number,
    v.id,
    u.login as author,
    v.user_id as author_id,
    u.type as author_type,
    v.author_association,
    v.state,
    v.body,
    v.commit_id,
    v.submitted_at,
    r.html_url || '/pull/' || v.pull_number || '#pullrequestreview-' || v.id as html_url
  from shown_repositories r
  join pull_request_reviews v on v.repository_id = r.id and v.deleted_at is null and v.state <> 'PENDING'
  left join users u on u.id = v.user_id;
comment on view tain_v1.reviews is 'One row is one submitted review of a pull request.';
comment on column tain_v1.reviews.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.reviews.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.reviews.number is 'The number of the pull request.';
comment on column tain_v1.reviews.id is 'Upstream''s id.';
comment on column tain_v1.reviews.author is 'Who wrote it: the login. Null: the account is gone.';
comment on column tain_v1.reviews.author_id is 'Who wrote it: the account''s id.';
comment on column tain_v1.reviews.author_type is 'Who wrote it: User, Bot or Organization. Null: not known.';
comment on column tain_v1.reviews.author_association is 'What its author is to the repository, such as MEMBER.';
comment on column tain_v1.reviews.state is 'APPROVED, CHANGES_REQUESTED, COMMENTED or DISMISSED.';
comment on column tain_v1.reviews.body is 'The text, as Markdown.';
comment on column tain_v1.reviews.commit_id is 'The commit that was reviewed.';
comment on column tain_v1.reviews.submitted_at is 'When it was submitted, by upstream''s clock.';
comment on column tain_v1.reviews.html_url is 'Its place at upstream.';

create view tain_v1.review_comments with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    c.pull_number as number,
    c.id,
    c.review_id,
    c.in_reply_to_id,
    u.login as author,
    c.user_id as author_id,
    u.type as author_type,
    c.author_association,
    c.path,
    c.line,
    c.side,
    c.commit_id,
    c.body,
    c.created_at,
    c.updated_at,
    r.html_url || '/pull/' || c.pull_number || '#discussion_r' || c.id as html_url
  from shown_repositories r
  join pull_request_review_comments c on c.repository_id = r.id and c.deleted_at is null
  left join users u on u.id = c.user_id;
comment on view tain_v1.review_comments is 'One row is one comment on a line of a pull request''s diff.';
comment on column tain_v1.review_comments.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.review_comments.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.review_comments.number is 'The number of the pull request.';
comment on column tain_v1.review_comments.id is 'Upstream''s id.';
comment on column tain_v1.review_comments.review_id is 'The review that it came with: tain_v1.reviews.id. Null: none.';
comment on column tain_v1.review_comments.in_reply_to_id is 'The comment that it answers. Null: it begins a thread.';
comment on column tain_v1.review_comments.author is 'Who wrote it: the login. Null: the account is gone.';
comment on column tain_v1.review_comments.author_id is 'Who wrote it: the account''s id.';
comment on column tain_v1.review_comments.author_type is 'Who wrote it: User, Bot or Organization. Null: not known.';
comment on column tain_v1.review_comments.author_association is 'What its author is to the repository, such as MEMBER.';
comment on column tain_v1.review_comments.path is 'The file.';
comment on column tain_v1.review_comments.line is 'The line. Null: the diff has it no more.';
comment on column tain_v1.review_comments.side is 'LEFT: the line as it was. RIGHT: as it is to be.';
comment on column tain_v1.review_comments.commit_id is 'The commit that it stands at.';
comment on column tain_v1.review_comments.body is 'The text, as Markdown.';
comment on column tain_v1.review_comments.created_at is 'When it was made, by upstream''s clock.';
comment on column tain_v1.review_comments.updated_at is 'When it last changed, by upstream''s clock.';
comment on column tain_v1.review_comments.html_url is 'Its place at upstream.';

create view tain_v1.labels with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    l.id,
    l.name,
    l.color,
    l.description
  from shown_repositories r
  join labels l on l.repository_id = r.id and l.deleted_at is null;
comment on view tain_v1.labels is 'One row is one label of a repository.';
comment on column tain_v1.labels.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.labels.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.labels.id is 'Upstream''s id.';
comment on column tain_v1.labels.name is 'The name.';
comment on column tain_v1.labels.color is 'The colour: six hexadecimal digits.';
comment on column tain_v1.labels.description is 'What it means.';

create view tain_v1.milestones with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    m.number,
    m.id,
    m.title,
    m.description,
    m.state,
    u.login as creator,
    m.open_issues,
    m.closed_issues,
    m.created_at,
    m.updated_at,
    m.due_on,
    m.closed_at,
    r.html_url || '/milestone/' || m.number as html_url
  from shown_repositories r
  join milestones m on m.repository_id = r.id and m.deleted_at is null
  left join users u on u.id = m.creator_id;
comment on view tain_v1.milestones is 'One row is one milestone of a repository.';
comment on column tain_v1.milestones.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.milestones.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.milestones.number is 'Its number in the repository.';
comment on column tain_v1.milestones.id is 'Upstream''s id.';
comment on column tain_v1.milestones.title is 'The title.';
comment on column tain_v1.milestones.description is 'What it is for.';
comment on column tain_v1.milestones.state is 'open or closed.';
comment on column tain_v1.milestones.creator is 'Who made it: the login. Null: the account is gone.';
comment on column tain_v1.milestones.open_issues is 'How many open issues and pull requests it has, as upstream counts.';
comment on column tain_v1.milestones.closed_issues is 'How many closed issues and pull requests it has, as upstream counts.';
comment on column tain_v1.milestones.created_at is 'When it was made, by upstream''s clock.';
comment on column tain_v1.milestones.updated_at is 'When it last changed, by upstream''s clock.';
comment on column tain_v1.milestones.due_on is 'When it is due. Null: no day is set.';
comment on column tain_v1.milestones.closed_at is 'When it was closed, by upstream''s clock. Null: it is open.';
comment on column tain_v1.milestones.html_url is 'Its page at upstream.';

create view tain_v1.users with (security_barrier) as
  select u.id,
    u.login,
    u.type,
    u.name,
    u.avatar_url
  from users u
  where u.deleted_at is null and ((select has_table_privilege(current_user, 'issues'::regclass, 'select'))
    or u.id in (
      select ia.user_id from shown_repositories r join issue_assignees ia on ia.repository_id = r.id
      union all select author_id from tain_v1.issues
      union all select author_id from tain_v1.pull_requests
      union all select author_id from tain_v1.comments
      union all select author_id from tain_v1.reviews
      union all select author_id from tain_v1.review_comments));
comment on view tain_v1.users is 'One row is one account. A role for some repositories sees those who wrote there, or are assigned there.';
comment on column tain_v1.users.id is 'Upstream''s id.';
comment on column tain_v1.users.login is 'The login.';
comment on column tain_v1.users.type is 'User, Bot or Organization. Null: not known.';
comment on column tain_v1.users.name is 'The person''s name. Null: none, or not known.';
comment on column tain_v1.users.avatar_url is 'The picture.';

create view tain_v1.checks with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    c.head_sha as sha,
    'check_run' as kind,
    c.id,
    c.name,
    c.status,
    c.conclusion,
    c.started_at,
    c.completed_at,
    r.html_url || '/runs/' || c.id as html_url
  from shown_repositories r
  join check_runs c on c.repository_id = r.id and c.deleted_at is null
  where not exists (select from check_runs n where n.repository_id = c.repository_id and n.head_sha = c.head_sha
    and n.check_suite_id is not distinct from c.check_suite_id and n.name = c.name and n.id > c.id and n.deleted_at is null)
  union all
  select r.id, r.full_name, c.sha, 'status', c.id, c.context, case c.state when 'pending' then 'pending' else 'completed' end,
    nullif(c.state, 'pending'), c.created_at, case when c.state <> 'pending' then c.created_at end, c.target_url
  from shown_repositories r
  join commit_statuses c on c.repository_id = r.id and c.deleted_at is null
  where not exists (select from commit_statuses n where n.repository_id = c.repository_id and n.sha = c.sha
    and folded(n.context) = folded(c.context) and (n.created_at, n.id) > (c.created_at, c.id) and n.deleted_at is null);
comment on view tain_v1.checks is 'One row is one check run, or one commit status: the newest of its name at a commit. With MIRROR=checks.';
comment on column tain_v1.checks.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.checks.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.checks.sha is 'The commit that is checked.';
comment on column tain_v1.checks.kind is 'check_run or status.';
comment on column tain_v1.checks.id is 'Upstream''s id. Runs and statuses may have the same.';
comment on column tain_v1.checks.name is 'The name of the run, or the context of the status.';
comment on column tain_v1.checks.status is 'completed once there is a conclusion; before: queued, in_progress, pending …';
comment on column tain_v1.checks.conclusion is 'success, failure, error, cancelled, neutral, skipped, timed_out … Null: it has not ended.';
comment on column tain_v1.checks.started_at is 'When it began, by upstream''s clock; of a status: when it was made.';
comment on column tain_v1.checks.completed_at is 'When it ended, by upstream''s clock. Null: it has not.';
comment on column tain_v1.checks.html_url is 'The run''s page at upstream; of a status, where it leads to.';

create view tain_v1.releases with (security_barrier) as
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
  left join users u on u.id = t.author_id;
comment on view tain_v1.releases is 'One row is one release. With MIRROR=releases.';
comment on column tain_v1.releases.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.releases.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.releases.id is 'Upstream''s id.';
comment on column tain_v1.releases.tag_name is 'The tag. Of a draft it may not exist yet.';
comment on column tain_v1.releases.name is 'The title.';
comment on column tain_v1.releases.draft is 'Whether it is a draft, which upstream shows only to those who may push.';
comment on column tain_v1.releases.prerelease is 'Whether it is marked as not ready for production.';
comment on column tain_v1.releases.author is 'Who made it: the login. Null: the account is gone.';
comment on column tain_v1.releases.target_commitish is 'The branch or commit that the tag is made from.';
comment on column tain_v1.releases.created_at is 'When the commit of its tag was made, by upstream''s clock.';
comment on column tain_v1.releases.published_at is 'When it was published, by upstream''s clock. Null: it is a draft.';
comment on column tain_v1.releases.html_url is 'Its page at upstream. Null: it is a draft.';

create view tain_v1.refs with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    case f.kind when 'heads' then 'branch' else 'tag' end as kind,
    f.name collate "default" as name,
    f.sha,
    f.commit_sha,
    f.protected,
    r.html_url || '/tree/' || f.name as html_url
  from shown_repositories r
  join refs f on f.repository_id = r.id and f.deleted_at is null and f.sha is not null;
comment on view tain_v1.refs is 'One row is one branch or tag. With MIRROR=refs.';
comment on column tain_v1.refs.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.refs.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.refs.kind is 'branch or tag.';
comment on column tain_v1.refs.name is 'The name without refs/heads/ or refs/tags/.';
comment on column tain_v1.refs.sha is 'What it points to: a commit, or the object of an annotated tag.';
comment on column tain_v1.refs.commit_sha is 'The commit that it leads to. Null: not known yet.';
comment on column tain_v1.refs.protected is 'Of a branch, whether a rule protects it. Null: not known, or a tag.';
comment on column tain_v1.refs.html_url is 'Its page at upstream.';

create view tain_v1.deployments with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    d.id,
    d.sha,
    d.ref,
    d.task,
    coalesce(s.environment, d.environment) as environment,
    d.description,
    u.login as creator,
    s.state,
    s.environment_url,
    s.log_url,
    d.created_at,
    d.updated_at
  from shown_repositories r
  join deployments d on d.repository_id = r.id and d.deleted_at is null
  left join users u on u.id = d.creator_id
  left join lateral (
    select t.state, t.environment, t.environment_url, t.log_url from deployment_statuses t
      where t.repository_id = d.repository_id and t.deployment_id = d.id and t.deleted_at is null order by t.id desc limit 1) s on true;
comment on view tain_v1.deployments is 'One row is one deployment, with its newest status. With MIRROR=deployments.';
comment on column tain_v1.deployments.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.deployments.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.deployments.id is 'Upstream''s id.';
comment on column tain_v1.deployments.sha is 'The commit that is deployed.';
comment on column tain_v1.deployments.ref is 'The branch, tag or commit that was asked for.';
comment on column tain_v1.deployments.task is 'What is done, such as deploy.';
comment on column tain_v1.deployments.environment is 'Where to.';
comment on column tain_v1.deployments.description is 'What its maker wrote of it.';
comment on column tain_v1.deployments.creator is 'Who made it: the login. Null: the account is gone.';
comment on column tain_v1.deployments.state is 'Its newest status: success, failure, in_progress, inactive … Null: none is held.';
comment on column tain_v1.deployments.environment_url is 'Where what was deployed can be seen.';
comment on column tain_v1.deployments.log_url is 'Where the output can be read.';
comment on column tain_v1.deployments.created_at is 'When it was made, by upstream''s clock.';
comment on column tain_v1.deployments.updated_at is 'When it last got a status, by upstream''s clock.';

create view tain_v1.events with (security_barrier) as
  select e.id,
    r.id as repository_id,
    r.full_name as repository,
    e.event,
    e.action,
    e.number,
    e.is_pull_request,
    e.is_made,
    e.received_at
  from shown_repositories r
  join events e on e.repository_id = r.id and e.id is not null;
comment on view tain_v1.events is 'One row is one event: a webhook that was applied, or what was made of a change that none told of. Kept as long as deliveries.';
comment on column tain_v1.events.id is 'Its place in the log: a later event has a greater one.';
comment on column tain_v1.events.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.events.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.events.event is 'The event''s name, as upstream sends it: issues, push …';
comment on column tain_v1.events.action is 'Its action, such as opened. Null: it has none.';
comment on column tain_v1.events.number is 'The number of the issue or pull request. Null: it is about none.';
comment on column tain_v1.events.is_pull_request is 'Whether that is a pull request. Null: it is about none.';
comment on column tain_v1.events.is_made is 'Whether Tain made it of a change that no webhook told of.';
comment on column tain_v1.events.received_at is 'When it was received, by our clock.';
