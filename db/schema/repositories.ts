import { observed, table } from "./table.ts";

/** One row is one repository that upstream showed us: a mirrored one, or one met as the head of a pull request. */
export const repositories = table("repositories", {
  id: "bigint",
  node_id: "text?",
  name: "text",
  full_name: "text",
  owner_id: "bigint?",
  html_url: "text?",
  private: "boolean",
  visibility: "text?",
  description: "text?",
  fork: "boolean?",
  archived: "boolean?",
  disabled: "boolean?",
  has_issues: "boolean?",
  default_branch: "text?",
  language: "text?",
  stargazers_count: "integer?",
  forks_count: "integer?",
  open_issues_count: "integer?",
  size: "integer?",
  created_at: "timestamptz?",
  updated_at: "timestamptz?",
  pushed_at: "timestamptz?",
  /** The keys that upstream sends only for a single repository. */
  detail: "json?",
  ...observed,
});
