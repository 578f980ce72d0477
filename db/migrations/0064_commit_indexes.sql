-- Oldest Tain that works beside this: 0.3.0
-- One statement at a time.
-- A commit of a rebased pull request keeps the time and the words of the one that it was made of.
create index concurrently if not exists pull_request_commits_authored on pull_request_commits (repository_id, authored_at);
