-- Oldest Tain that works beside this: 0.2.0
-- Changed in place, often: room on each page keeps the changes there.
create table revisions (
  repository_id bigint primary key,
  revision bigint not null
) with (fillfactor = 50);

comment on table revisions is 'One row is what tells readers whether anything of a repository may have changed since they last looked.';
comment on column revisions.repository_id is 'Upstream''s id of the repository; 0 for people, whom all repositories show.';
comment on column revisions.revision is 'Another number after each transaction that changes what is shown of it, or who may see it.';

-- In plpgsql, which plans it once per connection: it is the last statement of nearly each transaction that writes. Rows are
-- taken in one order, so that transactions wait for each other but never deadlock. Two repositories can bear one name for a
-- moment, and a change of one may decide which of them is found by it.
create function raise_revisions(touched bigint[], names text[]) returns void language plpgsql as $$
begin
  insert into revisions (repository_id, revision)
    select id, nextval('revision') from (
      select unnest(touched) as id union select r.id from repositories r where lower(r.full_name) = any(names)
    ) t order by id
    on conflict (repository_id) do update set revision = excluded.revision;
end
$$;
