-- Oldest Tain that works beside this: 0.2.0
comment on column problems.cause is 'absent: upstream does not show it; refused: upstream will not; unavailable: upstream failed; unread: upstream is a mirror that has still to read it; own: we did.';
