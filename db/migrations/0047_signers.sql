-- Oldest Tain that works beside this: 0.2.0
-- Deliveries that receivers from before this migration store count as signed by WEBHOOK_SECRET itself.
alter table deliveries add column signer_type text, add column signer_id bigint;
comment on column deliveries.signer_type is 'Whose own secret signed the delivery: repository, organization or integration (an App); null: WEBHOOK_SECRET itself, which signs for all.';
comment on column deliveries.signer_id is 'Upstream''s id of the repository, organisation or App whose secret signed the delivery; null: WEBHOOK_SECRET itself signed it.';

alter table installations add column account_id bigint;
comment on column installations.account_id is 'The account''s id at upstream; null: not read yet.';
-- The next read of the list is not conditional, so that it shows the ids.
update installations set told_at = coalesce(told_at, now());
