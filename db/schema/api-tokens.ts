import { table } from "./table.ts";

/** One row is one token of our own, which a caller of the read API shows. */
export const apiTokens = table("api_tokens", {
  /** SHA-256 of the token, lower hex. The token itself is shown once and not kept. */
  hash: "text",
  /** The user that `/user` and `viewer` answer as. */
  user_id: "bigint",
  can_write: "boolean",
  created_at: "timestamptz",
  last_used_at: "timestamptz?",
  revoked_at: "timestamptz?",
  /** The repositories that it is for, beside the public ones. Null together with `ownerIds`: all that is mirrored. */
  repository_ids: "bigint[]?",
  /** Accounts all of whose repositories it is for, also those that come to be mirrored later. */
  owner_ids: "bigint[]?",
  /** An hour, for this token alone. 0: no limit. Null: its user's common quota. */
  hourly_limit: "integer?",
});
