-- Oldest Tain that works beside this: 0.3.0
create view tain_v1.workflows with (security_barrier) as
  select r.id as repository_id,
    r.full_name as repository,
    w.id,
    w.name,
    w.path,
    w.state,
    w.created_at,
    w.updated_at
  from shown_repositories r
  join workflows w on w.repository_id = r.id and w.deleted_at is null;
comment on view tain_v1.workflows is 'One row is one workflow of Actions: a file that says what is run, and when. With MIRROR=actions.';
comment on column tain_v1.workflows.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.workflows.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.workflows.id is 'Upstream''s id.';
comment on column tain_v1.workflows.name is 'Its name.';
comment on column tain_v1.workflows.path is 'Its file, such as .github/workflows/ci.yml.';
comment on column tain_v1.workflows.state is 'active, deleted, disabled_fork, disabled_inactivity or disabled_manually.';
comment on column tain_v1.workflows.created_at is 'When it was made, by upstream''s clock.';
comment on column tain_v1.workflows.updated_at is 'When it last changed, by upstream''s clock.';

create view tain_v1.workflow_runs with (security_barrier) as
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
    l.read_at as jobs_read_at
  from shown_repositories r
  join workflow_runs t on t.repository_id = r.id and t.deleted_at is null
  left join workflows w on w.repository_id = t.repository_id and w.id = t.workflow_id
  left join workflow_job_lists l on l.repository_id = t.repository_id and l.parent_id = t.id
  left join users u on u.id = t.actor_id;
comment on view tain_v1.workflow_runs is 'One row is one run of a workflow, with its latest attempt. With MIRROR=actions.';
comment on column tain_v1.workflow_runs.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.workflow_runs.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.workflow_runs.id is 'Upstream''s id.';
comment on column tain_v1.workflow_runs.workflow_id is 'The workflow.';
comment on column tain_v1.workflow_runs.workflow is 'The workflow''s name. Null: it is not held.';
comment on column tain_v1.workflow_runs.name is 'The name of its workflow, or the one that the workflow gives its runs.';
comment on column tain_v1.workflow_runs.event is 'What started it, such as push.';
comment on column tain_v1.workflow_runs.head_sha is 'The commit.';
comment on column tain_v1.workflow_runs.head_branch is 'The branch. Null: it came from a fork.';
comment on column tain_v1.workflow_runs.run_number is 'Its number among the runs of its workflow.';
comment on column tain_v1.workflow_runs.run_attempt is 'The number of its latest attempt.';
comment on column tain_v1.workflow_runs.status is 'queued, in_progress, completed, waiting, requested or pending.';
comment on column tain_v1.workflow_runs.conclusion is 'How it ended: success, failure, neutral, cancelled, skipped, timed_out, action_required, stale or startup_failure. Null: it has not ended.';
comment on column tain_v1.workflow_runs.actor is 'Who started it: the login. Null: the account is gone.';
comment on column tain_v1.workflow_runs.actor_id is 'Who started it: the account''s id.';
comment on column tain_v1.workflow_runs.created_at is 'When it was first started, by upstream''s clock.';
comment on column tain_v1.workflow_runs.updated_at is 'When it last changed, by upstream''s clock: of a completed run, when it ended.';
comment on column tain_v1.workflow_runs.html_url is 'Its page at upstream.';
comment on column tain_v1.workflow_runs.jobs_read_at is 'When its jobs were last all here, by our clock. Null: some may be missing.';

create view tain_v1.workflow_jobs with (security_barrier) as
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
    r.html_url || '/actions/runs/' || j.run_id || '/job/' || j.id as html_url
  from shown_repositories r
  join workflow_runs t on t.repository_id = r.id and t.deleted_at is null
  join workflow_jobs j on j.repository_id = t.repository_id and j.run_id = t.id and j.deleted_at is null
  left join workflows w on w.repository_id = t.repository_id and w.id = t.workflow_id;
comment on view tain_v1.workflow_jobs is 'One row is one job of one attempt of a run. Held are those that webhooks told of, or whose run somebody asked for. With MIRROR=actions.';
comment on column tain_v1.workflow_jobs.repository_id is 'The repository''s id at upstream.';
comment on column tain_v1.workflow_jobs.repository is 'The repository''s name: owner/name.';
comment on column tain_v1.workflow_jobs.run_id is 'The run.';
comment on column tain_v1.workflow_jobs.id is 'Upstream''s id.';
comment on column tain_v1.workflow_jobs.workflow_id is 'The workflow of the run.';
comment on column tain_v1.workflow_jobs.workflow is 'The workflow''s name. Null: it is not held.';
comment on column tain_v1.workflow_jobs.run_attempt is 'The attempt of the run that it belongs to.';
comment on column tain_v1.workflow_jobs.name is 'Its name.';
comment on column tain_v1.workflow_jobs.head_sha is 'The commit.';
comment on column tain_v1.workflow_jobs.head_branch is 'The branch. Null: the run came from a fork.';
comment on column tain_v1.workflow_jobs.status is 'queued, in_progress, completed, waiting, requested or pending.';
comment on column tain_v1.workflow_jobs.conclusion is 'How it ended: success, failure, neutral, cancelled, skipped, timed_out or action_required. Null: it has not ended.';
comment on column tain_v1.workflow_jobs.created_at is 'When it was made, by upstream''s clock.';
comment on column tain_v1.workflow_jobs.started_at is 'When it began, by upstream''s clock.';
comment on column tain_v1.workflow_jobs.completed_at is 'When it ended, by upstream''s clock. Null: it has not.';
comment on column tain_v1.workflow_jobs.html_url is 'Its page at upstream.';
