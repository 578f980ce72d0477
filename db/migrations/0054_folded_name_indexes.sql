-- Oldest Tain that works beside this: 0.2.0
-- One statement at a time.
-- Processes from before 0053 look names up by lower(...), so the indexes of that stay for them.
create index concurrently if not exists repositories_folded_full_name on repositories (folded(full_name));
create index concurrently if not exists users_folded_login on users (folded(login));
create index concurrently if not exists labels_folded_name on labels (repository_id, folded(name));
