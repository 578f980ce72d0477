-- Oldest Tain that works beside this: 0.2.0
comment on table refresh_marks is 'One row is something about which the mirror must ask upstream: what we were told contradicts itself, or upstream did not know it yet.';
comment on column refresh_marks.kind is 'user, repository, label, milestone, issue, pull_request, issue_comment, review or review_comment; mergeability: whether the open pull requests of a repository can be merged.';
comment on column refresh_marks.key is 'Upstream''s id, or the number for issues and pull requests; the repository''s id for mergeability.';
