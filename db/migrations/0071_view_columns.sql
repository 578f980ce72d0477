-- Oldest Tain that works beside this: 0.3.0
-- Columns for what queries had to work out. Postgres leaves out a left join, lateral ones too, where a query selects none
-- of its columns.
create or replace view tain_v1.issues with (security_barrier) as
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
    r.html_url || '/issues/' || i.number as html_url,
    (extract(epoch from i.closed_at - i.created_at) / 3600)::float8 as hours_to_close,
    answer.answered_at,
    (extract(epoch from answer.answered_at - i.created_at) / 3600)::float8 as hours_to_answer
  from shown_repositories r
  join issues i on i.repository_id = r.id and i.deleted_at is null and i.id is not null and not i.is_pull_request
  left join users u on u.id = i.user_id
  left join users c on c.id = i.closed_by_id
  left join milestones m on m.repository_id = i.repository_id and m.id = i.milestone_id and m.deleted_at is null
  left join lateral (
    select min(o.created_at) as answered_at from issue_comments o left join users b on b.id = o.user_id
      where o.repository_id = i.repository_id and o.issue_number = i.number and o.deleted_at is null
        and o.user_id is distinct from i.user_id and b.type is distinct from 'Bot') answer on true;
comment on column tain_v1.issues.hours_to_close is 'How many hours it took to be closed. Null: it is open.';
comment on column tain_v1.issues.answered_at is 'When somebody else than its author first commented, bots left out, by upstream''s clock. Null: nobody has.';
comment on column tain_v1.issues.hours_to_answer is 'How many hours that took. Null: nobody has.';

create or replace view tain_v1.pull_requests with (security_barrier) as
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
    r.html_url || '/pull/' || p.number as html_url,
    (extract(epoch from p.merged_at - p.created_at) / 3600)::float8 as hours_to_merge,
    review.reviewed_at,
    (extract(epoch from review.reviewed_at - p.created_at) / 3600)::float8 as hours_to_review,
    case when p.user_id is not null then not exists (
      select from issues e where e.repository_id = p.repository_id and e.user_id = p.user_id and e.is_pull_request
        and e.deleted_at is null and (e.created_at, e.number) < (p.created_at, p.number)) end as is_first
  from shown_repositories r
  join pull_requests p on p.repository_id = r.id and p.deleted_at is null and p.id is not null
  left join users u on u.id = p.user_id
  left join users g on g.id = p.merged_by_id
  left join milestones m on m.repository_id = p.repository_id and m.id = p.milestone_id and m.deleted_at is null
  left join lateral (
    select min(v.submitted_at) as reviewed_at from pull_request_reviews v left join users b on b.id = v.user_id
      where v.repository_id = p.repository_id and v.pull_number = p.number and v.deleted_at is null and v.state <> 'PENDING'
        and v.user_id is distinct from p.user_id and b.type is distinct from 'Bot') review on true;
comment on column tain_v1.pull_requests.hours_to_merge is 'How many hours it took to be merged. Null: it is not.';
comment on column tain_v1.pull_requests.reviewed_at is 'When somebody else than its author first submitted a review, bots left out, by upstream''s clock. Null: nobody has.';
comment on column tain_v1.pull_requests.hours_to_review is 'How many hours that took. Null: nobody has.';
comment on column tain_v1.pull_requests.is_first is 'Whether its author had opened none in the repository before. Null: the account is gone.';

create or replace view tain_v1.reviews with (security_barrier) as
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
    r.html_url || '/pull/' || v.pull_number || '#pullrequestreview-' || v.id as html_url,
    case when p.number is not null then v.user_id is not distinct from p.user_id end as is_own
  from shown_repositories r
  join pull_request_reviews v on v.repository_id = r.id and v.deleted_at is null and v.state <> 'PENDING'
  left join users u on u.id = v.user_id
  left join pull_requests p on p.repository_id = v.repository_id and p.number = v.pull_number and p.id is not null and p.deleted_at is null;
comment on column tain_v1.reviews.is_own is 'Whether who wrote it opened the pull request as well. Null: the pull request is not held.';

create or replace view tain_v1.milestones with (security_barrier) as
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
    r.html_url || '/milestone/' || m.number as html_url,
    case when m.closed_issues > 0 then 100.0::float8 * m.closed_issues / (m.open_issues + m.closed_issues) else 0 end as progress_percentage
  from shown_repositories r
  join milestones m on m.repository_id = r.id and m.deleted_at is null
  left join users u on u.id = m.creator_id;
comment on column tain_v1.milestones.progress_percentage is 'How much of it is closed: 0 to 100. 0: it has no issue and no pull request.';

create or replace view tain_v1.checks with (security_barrier) as
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
    r.html_url || '/runs/' || c.id as html_url,
    coalesce(c.conclusion in ('failure', 'timed_out', 'startup_failure'), false) as has_failed
  from shown_repositories r
  join check_runs c on c.repository_id = r.id and c.deleted_at is null
  where not exists (select from check_runs n where n.repository_id = c.repository_id and n.head_sha = c.head_sha
    and n.check_suite_id is not distinct from c.check_suite_id and n.name = c.name and n.id > c.id and n.deleted_at is null)
  union all
  select r.id, r.full_name, c.sha, 'status', c.id, c.context, case c.state when 'pending' then 'pending' else 'completed' end,
    nullif(c.state, 'pending'), c.created_at, case when c.state <> 'pending' then c.created_at end, c.target_url,
    c.state in ('failure', 'error')
  from shown_repositories r
  join commit_statuses c on c.repository_id = r.id and c.deleted_at is null
  where not exists (select from commit_statuses n where n.repository_id = c.repository_id and n.sha = c.sha
    and folded(n.context) = folded(c.context) and (n.created_at, n.id) > (c.created_at, c.id) and n.deleted_at is null);
comment on column tain_v1.checks.has_failed is 'Whether it ended with failure, error, timed_out or startup_failure.';

create or replace view tain_v1.workflow_runs with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    t.id,
    t.workflow_id,
    w.name as workflow,
    t.name,
    t.event,
    t.head_sha,
    t.head_branch,
    t.run_number,
    t.run_attempt,
    t.status,
    t.conclusion,
    u.login as actor,
    t.actor_id,
    t.created_at,
    t.updated_at,
    r.html_url || '/actions/runs/' || t.id as html_url,
    l.read_at as jobs_read_at,
    coalesce(t.conclusion in ('failure', 'timed_out', 'startup_failure'), false) as has_failed
  from shown_repositories r
  join workflow_runs t on t.repository_id = r.id and t.deleted_at is null
  left join workflows w on w.repository_id = t.repository_id and w.id = t.workflow_id
  left join workflow_job_lists l on l.repository_id = t.repository_id and l.parent_id = t.id
  left join users u on u.id = t.actor_id;
comment on column tain_v1.workflow_runs.has_failed is 'Whether it ended with failure, timed_out or startup_failure.';

create or replace view tain_v1.workflow_jobs with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    j.run_id,
    j.id,
    t.workflow_id,
    w.name as workflow,
    j.run_attempt,
    j.name,
    t.head_sha,
    t.head_branch,
    j.status,
    j.conclusion,
    j.created_at,
    j.started_at,
    j.completed_at,
    r.html_url || '/actions/runs/' || j.run_id || '/job/' || j.id as html_url,
    coalesce(j.conclusion in ('failure', 'timed_out'), false) as has_failed
  from shown_repositories r
  join workflow_runs t on t.repository_id = r.id and t.deleted_at is null
  join workflow_jobs j on j.repository_id = t.repository_id and j.run_id = t.id and j.deleted_at is null
  left join workflows w on w.repository_id = t.repository_id and w.id = t.workflow_id;
comment on column tain_v1.workflow_jobs.has_failed is 'Whether it ended with failure or timed_out.';
