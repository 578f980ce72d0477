-- Oldest Tain that works beside this: 0.3.0
-- A process from before this migration counts nothing here.
create table activity (
  minutes integer not null,
  began_at timestamptz not null,
  arrived bigint,
  applied bigint,
  ignored bigint,
  lag_ms bigint,
  slowest_ms bigint,
  spent_requests bigint,
  spent_points bigint,
  spared_requests bigint,
  spared_points bigint,
  by_mirror bigint,
  by_kept bigint,
  by_forwarding bigint,
  primary key (minutes, began_at),
  constraint activity_minutes check (minutes in (1, 15))
);
comment on table activity is 'One row is what all processes counted in a minute, or in a quarter of an hour that is over for long. Null: no process has told of it, so it is not known.';
comment on column activity.minutes is 'How long the row''s time is: 1, or 15 once it is older than two hours.';
comment on column activity.began_at is 'When its time began, by our clock.';
comment on column activity.arrived is 'Deliveries that were accepted.';
comment on column activity.applied is 'Deliveries that were applied.';
comment on column activity.ignored is 'Deliveries of which nothing was to be applied, or that could not be read.';
comment on column activity.lag_ms is 'From their receipt until the mirror showed them, summed over the applied deliveries, in milliseconds.';
comment on column activity.slowest_ms is 'The longest of them.';
comment on column activity.spent_requests is 'What upstream charged of the mirror''s own quota, in requests.';
comment on column activity.spent_points is 'The same, in points of GraphQL.';
comment on column activity.spared_requests is 'What upstream would have charged callers for what they were answered here, in requests.';
comment on column activity.spared_points is 'The same, in points of GraphQL.';
comment on column activity.by_mirror is 'Answers to callers from the mirror''s rows.';
comment on column activity.by_kept is 'Answers to callers that were kept.';
comment on column activity.by_forwarding is 'Answers to callers that upstream was asked for.';
