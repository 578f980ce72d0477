-- Oldest Tain that works beside this: 0.2.0
-- Events that workers from before this migration make, or pass on from another mirror, have no mark.
alter table deliveries add column is_made boolean not null default false;
comment on column deliveries.is_made is 'Whether no webhook told of the change: we made it, or the mirror that is our upstream did.';
comment on column deliveries.hook_id is 'Upstream''s id of the hook; 0 when it named none; -1: we made it, of a change that no webhook told of.';

alter table api_tokens drop constraint api_tokens_permissions_check;
alter table api_tokens add constraint api_tokens_permissions_check check
  (permissions <@ array['issues:read', 'issues:write', 'pull_requests:read', 'pull_requests:write', 'checks:read',
    'statuses:read', 'contents:read', 'hooks:write']);
