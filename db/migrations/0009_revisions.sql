-- Changed in place, often: room on each page keeps the changes there.
create table revisions (
  repository_id bigint primary key,
  revision bigint not null
) with (fillfactor = 50);

comment on table revisions is 'One row is what tells readers whether anything of a repository may have changed since they last looked.';
comment on column revisions.repository_id is 'Upstream''s id of the repository; 0 for people, whom all repositories show.';
comment on column revisions.revision is 'Another number after each transaction that changes what is shown of it, or who may see it.';
