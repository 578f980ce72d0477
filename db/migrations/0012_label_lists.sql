-- Oldest Tain that works beside this: 0.2.0
-- What a list by label asks of an issue stands beside the label, so that such a list is read from one index in its own order,
-- however large the repository is.
-- Writers change issues first, and wait here.
lock table issues in share row exclusive mode;
create temporary table labelled on commit drop as
  select l.repository_id, l.label_id, l.number, i.state, i.is_pull_request, i.id is not null and i.deleted_at is null as is_shown, i.created_at
  from issue_labels l join issues i on i.repository_id = l.repository_id and i.number = l.number;
truncate issue_labels;
alter table issue_labels
  add column state text not null,
  add column is_pull_request boolean not null,
  add column is_shown boolean not null,
  add column created_at timestamptz not null;
-- The key leads with the issue, by which its labels are found, and so needs no second index for that.
alter table issue_labels drop constraint issue_labels_pkey;
drop index issue_labels_number;
insert into issue_labels select * from labelled;
alter table issue_labels add primary key (repository_id, number, label_id);
create index issue_labels_listed on issue_labels (repository_id, label_id, is_shown, is_pull_request, state, created_at, number);

comment on column issue_labels.state is 'issues.state.';
comment on column issue_labels.is_pull_request is 'issues.is_pull_request.';
comment on column issue_labels.is_shown is 'Whether the issue is whole and not deleted.';
comment on column issue_labels.created_at is 'issues.created_at.';

-- Who adds a label reads this from the issue, whose row is locked until then: see src/mirror/store/follow-rows.ts.
create function follow_labelled_issue() returns trigger language plpgsql as $$
begin
  update issue_labels set state = new.state, is_pull_request = new.is_pull_request,
      is_shown = new.id is not null and new.deleted_at is null, created_at = new.created_at
    where repository_id = new.repository_id and number = new.number;
  return null;
end
$$;
create trigger issue_labels_follow after update on issues for each row
  when ((old.state, old.is_pull_request, old.id is null, old.deleted_at is null, old.created_at)
    is distinct from (new.state, new.is_pull_request, new.id is null, new.deleted_at is null, new.created_at))
  execute function follow_labelled_issue();
