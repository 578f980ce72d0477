import { sql } from "../../../../db/sql.ts";
import { BIGINT, direction, type Order, type PageSource, TIMESTAMP } from "../pages.ts";

export function issueComments(orderBy: Order | null | undefined): PageSource {
  return {
    from: sql`issue_comments c`,
    repositoryId: sql`c.repository_id`,
    document: sql`c.document`,
    body: sql`c.body`,
    conditions: [sql`c.repository_id = x.r and c.issue_number = x.n and c.deleted_at is null`],
    ...(orderBy ? { key: sql`c.updated_at`, keyType: TIMESTAMP } : { key: sql`c.id`, keyType: BIGINT }),
    tie: sql`c.id`,
    direction: direction(orderBy),
  };
}

export function reviews({ author, states }: { author?: string | null; states?: string[] | null }): PageSource {
  return {
    from: sql`pull_request_reviews c`,
    repositoryId: sql`c.repository_id`,
    document: sql`c.document`,
    detail: sql`c.detail`,
    body: sql`c.body`,
    conditions: [
      sql`c.repository_id = x.r and c.pull_number = x.n and c.deleted_at is null and c.state <> 'PENDING'`,
      ...(states && states.length > 0 ? [sql`c.state = any(${states}::text[])`] : []),
      ...(author == null
        ? []
        : [sql`c.user_id = any(array(select u.id from users u where lower(u.login) = ${author.toLowerCase()}))`]),
    ],
    key: sql`c.id`,
    keyType: BIGINT,
    tie: sql`c.id`,
    direction: "asc",
  };
}

/** Each person's last review, if none is requested anew (GitHub docs: "that are not also pending review"). */
export const latestReviews: PageSource = {
  ...reviews({}),
  conditions: [
    ...reviews({}).conditions,
    sql`not exists (select from pull_request_reviews v where v.repository_id = c.repository_id and v.pull_number = c.pull_number
      and v.user_id = c.user_id and v.id > c.id and v.deleted_at is null and v.state <> 'PENDING')`,
    // The document names the requested reviewers, as marks for users: see `template.ts`.
    sql`not exists (select from pull_requests p where p.repository_id = x.r and p.number = x.n and p.document::text ~
      (${`"requested_reviewers":\\[[^\\]]*\\\\u0005u`} || c.user_id || ':'))`,
  ],
};

/** The comments on the diff that a review holds. */
export const reviewComments: PageSource = {
  from: sql`pull_request_review_comments c`,
  repositoryId: sql`c.repository_id`,
  document: sql`c.document`,
  body: sql`c.body`,
  // The pull request is named too, since the index begins with it.
  conditions: [
    sql`c.repository_id = x.r and c.review_id = x.n and c.deleted_at is null and c.pull_number =
      (select v.pull_number from pull_request_reviews v where v.repository_id = x.r and v.id = x.n)`,
  ],
  key: sql`c.id`,
  keyType: BIGINT,
  tie: sql`c.id`,
  direction: "asc",
};
