-- Oldest Tain that works beside this: 0.2.0
-- Words as search knows them: letters and digits in any case, by their English stem. No word is too common to be found.
create text search dictionary word_stems (template = snowball, language = english);
create text search configuration words (parser = default);
alter text search configuration words add mapping for asciiword, word with word_stems;
alter text search configuration words add mapping for numword, int, uint, float, sfloat with simple;

-- Only letters and digits make words, so that paths, addresses and names with dashes are found by their parts.
-- A text search vector is refused beyond a megabyte; what is cut off here cannot make a larger one.
create function search_text(text) returns text language sql immutable parallel safe
  return regexp_replace(left($1, 100000), '[^[:alnum:]]+', ' ', 'g');
create function search_words(text) returns tsvector language sql immutable parallel safe
  return to_tsvector('words', search_text(coalesce($1, '')));
-- Words that stand together have to stand so in what is found.
create function search_query(text) returns tsquery language sql immutable parallel safe
  return phraseto_tsquery('words', search_text($1));

alter table issues add column search tsvector
  generated always as (setweight(search_words(title), 'A') || setweight(search_words(body), 'B')) stored;
alter table issue_comments add column search tsvector generated always as (search_words(body)) stored;
comment on column issues.search is 'The words of the title (A) and the body (B): search @@ search_query(''…'').';
comment on column issue_comments.search is 'The words of the body: search @@ search_query(''…'').';

create index issues_search on issues using gin (search);
create index issue_comments_search on issue_comments using gin (search);
-- What a person has to do with, in all repositories.
create index issues_by_user on issues (user_id, repository_id, number);
create index issue_assignees_user on issue_assignees (user_id, repository_id, number);
create index issue_comments_user on issue_comments (user_id, repository_id, issue_number);
