-- Oldest Tain that works beside this: 0.3.0
create table account_names (
  user_id bigint primary key,
  due_at timestamptz not null
);
create index account_names_due on account_names (due_at);
comment on table account_names is 'One row is one account that may have a name: a person or an organisation.';
comment on column account_names.user_id is 'The account''s id.';
comment on column account_names.due_at is 'When upstream is asked for the name, by our clock: at once for an account that was just first seen, then every day.';
insert into account_names (user_id, due_at)
  select id, now() from users where type is null or type not in ('Bot', 'Mannequin');
