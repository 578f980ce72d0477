import { observed, table } from "./table.ts";

/** One row is one account: a person, bot or organisation, mirrored once however often it is embedded. */
export const users = table("users", {
  id: "bigint",
  node_id: "text?",
  login: "text",
  type: "text?",
  name: "text?",
  avatar_url: "text?",
  site_admin: "boolean?",
  updated_at: "timestamptz?",
  ...observed,
});
