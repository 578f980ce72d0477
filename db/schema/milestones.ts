import { observed, table } from "./table.ts";

/** One row is one milestone of one repository. */
export const milestones = table("milestones", {
  repository_id: "bigint",
  id: "bigint",
  node_id: "text?",
  number: "integer",
  title: "text",
  description: "text?",
  state: "text",
  creator_id: "bigint?",
  open_issues: "integer?",
  closed_issues: "integer?",
  created_at: "timestamptz?",
  updated_at: "timestamptz?",
  due_on: "timestamptz?",
  closed_at: "timestamptz?",
  ...observed,
});
