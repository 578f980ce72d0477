import { openDatabase } from "../db/database.ts";
import { sql } from "../db/sql.ts";
import type { BenchDatabase } from "./databases.ts";

/**
 * The corpus' issues in tables that are made for an API: a row each, columns for what is asked, keys and indexes for
 * how it is asked.
 */
const TABLES = `
  create schema peer;
  create table peer.repositories (id bigint primary key, full_name text not null unique, has_issues boolean not null);
  create table peer.users (id bigint primary key, node_id text not null, login text not null, name text);
  create table peer.labels (repository_id bigint not null references peer.repositories, id bigint not null, node_id text not null,
    name text not null, description text, color text not null, primary key (repository_id, id));
  create table peer.milestones (repository_id bigint not null references peer.repositories, id bigint not null,
    number integer not null, title text not null, description text, due_on timestamptz, primary key (repository_id, id));
  create table peer.issues (repository_id bigint not null references peer.repositories, number integer not null,
    title text not null, url text not null, state text not null, created_at timestamptz not null, updated_at timestamptz not null,
    user_id bigint references peer.users, milestone_id bigint, primary key (repository_id, number),
    foreign key (repository_id, milestone_id) references peer.milestones);
  create table peer.issue_labels (repository_id bigint not null, number integer not null, label_id bigint not null,
    primary key (repository_id, number, label_id), foreign key (repository_id, number) references peer.issues,
    foreign key (repository_id, label_id) references peer.labels);
  create table peer.issue_assignees (repository_id bigint not null, number integer not null, user_id bigint not null references peer.users,
    primary key (repository_id, number, user_id), foreign key (repository_id, number) references peer.issues);`;

const ROWS = `
  insert into peer.repositories select id, full_name, coalesce(has_issues, true) from repositories;
  insert into peer.users select id, node_id, login, name from users;
  insert into peer.labels select repository_id, id, node_id, name, description, color from labels;
  insert into peer.milestones select repository_id, id, number, title, description, due_on from milestones;
  insert into peer.issues select i.repository_id, i.number, i.title, r.html_url || '/issues/' || i.number, i.state, i.created_at,
      i.updated_at, u.id, i.milestone_id
    from issues i join repositories r on r.id = i.repository_id left join users u on u.id = i.user_id where not i.is_pull_request;
  insert into peer.issue_labels select l.repository_id, l.number, l.label_id from issue_labels l join peer.issues using (repository_id, number);
  insert into peer.issue_assignees select a.repository_id, a.number, a.user_id from issue_assignees a join peer.issues using (repository_id, number);`;

const INDEXES = `
  create index on peer.issues (repository_id, state, created_at desc, number desc);
  create index on peer.issues (repository_id, created_at desc, number desc);
  create index on peer.issues (user_id);
  create index on peer.issues (repository_id, milestone_id);
  create index on peer.issue_labels (repository_id, label_id);
  create index on peer.issue_assignees (user_id)`;

/** Makes the tables in the schema `peer`, beside those they are made of. */
export async function preparePeerTables({ url }: BenchDatabase): Promise<void> {
  const db = openDatabase(url, { maxConnections: 1, applicationName: "bench peer" });
  try {
    await db.query(sql.script(TABLES + ROWS + INDEXES));
    await db.query(sql`vacuum analyze`);
  } finally {
    await db.close();
  }
}
