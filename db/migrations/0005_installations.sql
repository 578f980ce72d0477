-- Oldest Tain that works beside this: 0.1.0
create table installations (
  id bigint primary key,
  account text not null,
  account_type text not null,
  repository_selection text not null,
  permissions json not null,
  events json not null,
  suspended_at timestamptz,
  listed_at timestamptz,
  told_at timestamptz
);

comment on table installations is 'One row is one account on which our GitHub App is installed, as upstream last showed it.';
comment on column installations.id is 'Upstream''s id of the installation.';
comment on column installations.account is 'The login of the user or organization.';
comment on column installations.account_type is 'User or Organization.';
comment on column installations.repository_selection is 'all, or selected.';
comment on column installations.permissions is 'What the account has granted: name to read, write or admin.';
comment on column installations.events is 'Which webhooks upstream sends of it.';
comment on column installations.suspended_at is 'Since when it is suspended, by upstream''s clock; null when it is not.';
comment on column installations.listed_at is 'When its repositories were last listed in full, by our clock; null: they are to be.';
comment on column installations.told_at is 'When a webhook last told of it, by our clock; null once a later read has seen that.';

create table installation_repositories (
  repository_id bigint primary key,
  installation_id bigint not null,
  full_name text not null,
  page integer not null
);

create index installation_repositories_installation on installation_repositories (installation_id);

comment on table installation_repositories is 'One row is one repository that an installation of our GitHub App covers, or covered once.';
comment on column installation_repositories.repository_id is 'Upstream''s id of the repository.';
comment on column installation_repositories.installation_id is 'Upstream''s id of the installation.';
comment on column installation_repositories.full_name is 'owner/name, as it was listed.';
comment on column installation_repositories.page is 'On which page of upstream''s list it stood: a page that has not changed still holds it. 0: it is covered no more.';

create table token_owners (
  fingerprint text primary key,
  user_id bigint not null,
  login text not null
);

comment on table token_owners is 'One row is one of our tokens for upstream and whose it is: the tokens of one user share one quota.';
comment on column token_owners.fingerprint is 'The fingerprint of the token.';
comment on column token_owners.user_id is 'Upstream''s id of the user.';
comment on column token_owners.login is 'The user''s login when it was asked.';

alter table validators add column made_for text;

comment on column validators.made_for is 'A fingerprint of the token string that the ETag is for, where the credential changes its own; null where it does not.';
