-- Oldest Tain that works beside this: 0.2.0
-- It is lost in a crash of Postgres, and not sent to its replicas: each row can be had again from upstream.
create unlogged table forwarded_answers (
  question text not null,
  shown_to text not null,
  id uuid not null,
  made_at timestamptz not null,
  used_at timestamptz not null,
  headers json not null,
  body bytea not null,
  varies_by text,
  bytes integer not null,
  mirror_repository_id bigint,
  mirror_shown_at timestamptz,
  primary key (question, shown_to)
);
create index forwarded_answers_used on forwarded_answers (used_at);

comment on table forwarded_answers is 'One row is one answer of upstream''s to a question that the mirror only passes on. Nobody is shown it unless upstream has shown it to their token.';
comment on column forwarded_answers.question is 'A digest of what was asked: path, query, media type and version. It holds nothing of who asked.';
comment on column forwarded_answers.shown_to is 'Empty: its ETag can be computed for every token. Otherwise the fingerprint of the token that alone has an ETag for it; mirror: the mirror''s own.';
comment on column forwarded_answers.id is 'Tells it from what was answered before: who was shown that was not shown this.';
comment on column forwarded_answers.made_at is 'When upstream answered it, by our clock.';
comment on column forwarded_answers.used_at is 'When it was last of use, to the hour, by our clock.';
comment on column forwarded_answers.headers is 'Of upstream''s answer, those that belong to the body.';
comment on column forwarded_answers.body is 'As upstream sent it.';
comment on column forwarded_answers.varies_by is 'Which request headers the ETag covers, as in validators; null: that is not known.';
comment on column forwarded_answers.bytes is 'What it counts for in FORWARD_CACHE_BYTES.';
comment on column forwarded_answers.mirror_repository_id is 'The repository below which upstream showed it to the mirror''s own credential; null: it did not.';
comment on column forwarded_answers.mirror_shown_at is 'When it last did so, by our clock.';
