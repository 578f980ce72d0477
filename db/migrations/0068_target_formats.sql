-- Oldest Tain that works beside this: 0.3.0
-- A worker from before this migration sends such a target every event as upstream sent it.
alter table targets add column format text, add column actions text[], add column labels text[];
alter table targets add constraint targets_format check (format in ('slack', 'teams', 'discord', 'cloudevents'));
comment on column targets.format is 'How events are told: as a message of this chat, or as CloudEvents. Null: as upstream sent them.';
comment on column targets.actions is 'Only events with one of these actions are sent. Null: all are.';
comment on column targets.labels is 'Only events about something with one of these labels are sent, whatever their case. Null: all are.';
