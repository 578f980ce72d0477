import { table } from "./table.ts";

/** One row is one account on which our GitHub App is installed, as upstream last showed it. */
export const installations = table("installations", {
  id: "bigint",
  account: "text",
  account_type: "text",
  /** `all` or `selected`. */
  repository_selection: "text",
  permissions: "json",
  events: "json",
  suspended_at: "timestamptz?",
  /** When its repositories were last listed in full; null: they are to be. */
  listed_at: "timestamptz?",
  /** When a webhook last told of it; null once a later read has seen that. */
  told_at: "timestamptz?",
});

/** One row is one repository that an installation covers, or covered once. There is one at most: that of its owner. */
export const installationRepositories = table("installation_repositories", {
  repository_id: "bigint",
  installation_id: "bigint",
  /** `owner/name`, as it was listed. */
  full_name: "text",
  /** On which page of upstream's list it stood: a page that has not changed still holds it. 0: it is covered no more. */
  page: "integer",
});

/** One row is one of our tokens for upstream and whose it is. */
export const tokenOwners = table("token_owners", {
  fingerprint: "text",
  user_id: "bigint",
  login: "text",
});
