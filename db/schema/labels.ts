import { observed, table } from "./table.ts";

/** One row is one label of one repository. */
export const labels = table("labels", {
  repository_id: "bigint",
  id: "bigint",
  node_id: "text?",
  name: "text",
  color: "text?",
  description: "text?",
  default: "boolean?",
  updated_at: "timestamptz?",
  ...observed,
});
