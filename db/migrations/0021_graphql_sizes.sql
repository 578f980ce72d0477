-- Oldest Tain that works beside this: 0.2.0
create table graphql_sizes (
  repository_id bigint not null,
  query text not null,
  size integer not null,
  proved integer not null,
  is_retreating boolean not null,
  answered integer not null,
  wait integer not null,
  learnt_at timestamptz not null,
  primary key (repository_id, query)
);
comment on table graphql_sizes is 'One row is one GraphQL query that was too heavy for upstream in a repository, and how much of it upstream can bear. Without a row the query asks for all that it may.';
comment on column graphql_sizes.repository_id is 'Upstream''s id of the repository.';
comment on column graphql_sizes.query is 'pull pages: details page by page; single pulls: the same of named pull requests; mergeability.';
comment on column graphql_sizes.size is 'How many pull requests the next query asks for.';
comment on column graphql_sizes.proved is 'Up to this many are asked for again, twice as many each time, after a query was too heavy.';
comment on column graphql_sizes.is_retreating is 'The last query was too heavy.';
comment on column graphql_sizes.answered is 'How many queries of the proved size were answered since it was last changed or refused.';
comment on column graphql_sizes.wait is 'After so many answers a larger size is tried: twice as many each time that one is refused.';
comment on column graphql_sizes.learnt_at is 'When this last changed, by our clock.';
