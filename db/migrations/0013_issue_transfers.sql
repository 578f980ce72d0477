-- Oldest Tain that works beside this: 0.2.0
create table issue_transfers (
  repository_id bigint not null,
  number integer not null,
  to_repository_id bigint not null,
  to_number integer not null,
  primary key (repository_id, number)
);
comment on table issue_transfers is 'One row is an issue that left for another repository, of which upstream answers with its new place.';
comment on column issue_transfers.repository_id is 'Where it was.';
comment on column issue_transfers.number is 'The number that it had there.';
comment on column issue_transfers.to_repository_id is 'Where it is, or was next; maybe not mirrored.';
comment on column issue_transfers.to_number is 'The number that it got there.';
