import { sql } from "drizzle-orm";
import {
  boolean,
  check,
  index,
  integer,
  json,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from "drizzle-orm/pg-core";
import { bytea, int8, timestamptz } from "./columns.ts";
import type { TokenOf, WriteOutcome } from "./states.ts";

/** One row is one token of our own, which a caller of the read API shows. */
export const apiTokens = pgTable(
  "api_tokens",
  {
    hash: text().primaryKey(),
    userId: int8("user_id").notNull(),
    canWrite: boolean("can_write").notNull(),
    createdAt: timestamptz("created_at").notNull(),
    lastUsedAt: timestamptz("last_used_at"),
    revokedAt: timestamptz("revoked_at"),
    repositoryIds: int8("repository_ids").array(),
    ownerIds: int8("owner_ids").array(),
    hourlyLimit: integer("hourly_limit"),
    expiresAt: timestamptz("expires_at"),
    permissions: text().array(),
    id: text(),
    name: text(),
  },
  (table) => [
    uniqueIndex("api_tokens_names").on(table.name).where(sql`revoked_at is null`),
    check("api_tokens_name_check", sql`(name ~ '^[a-z0-9][a-z0-9-]{0,38}$'::text)`),
    check(
      "api_tokens_permissions_check",
      sql`(permissions <@ ARRAY['issues:read'::text, 'issues:write'::text, 'pull_requests:read'::text, 'pull_requests:write'::text, 'checks:read'::text, 'statuses:read'::text, 'contents:read'::text, 'deployments:read'::text, 'actions:read'::text, 'hooks:write'::text])`,
    ),
  ],
);

/** One row is one repository that one role of Postgres may read, through the views of `tain_v1`. */
export const readerRepositories = pgTable(
  "reader_repositories",
  {
    repositoryId: int8("repository_id").notNull(),
    role: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.role], name: "reader_repositories_pkey" })],
);

/** One row is one of our tokens for upstream and whose it is: the tokens of one user share one quota. */
export const tokenOwners = pgTable("token_owners", {
  fingerprint: text().primaryKey(),
  userId: int8("user_id").notNull(),
  login: text().notNull(),
});

/**
 * One row is one answer of upstream's to a question that the mirror only passes on. Nobody is shown it unless upstream
 * has shown it to their token.
 */
export const forwardedAnswers = pgTable(
  "forwarded_answers",
  {
    question: text().notNull(),
    shownTo: text("shown_to").notNull(),
    id: uuid().notNull(),
    madeAt: timestamptz("made_at").notNull(),
    usedAt: timestamptz("used_at").notNull(),
    headers: json().notNull(),
    body: bytea().notNull(),
    variesBy: text("varies_by"),
    bytes: integer().notNull(),
    mirrorRepositoryId: int8("mirror_repository_id"),
    mirrorShownAt: timestamptz("mirror_shown_at"),
  },
  (table) => [
    primaryKey({ columns: [table.question, table.shownTo], name: "forwarded_answers_pkey" }),
    index("forwarded_answers_used").on(table.usedAt),
  ],
);

/** One row is one write that a caller had this mirror send to upstream. */
export const writes = pgTable(
  "writes",
  {
    id: int8().primaryKey().generatedAlwaysAsIdentity(),
    begunAt: timestamptz("begun_at").notNull(),
    endedAt: timestamptz("ended_at"),
    tokenOf: text("token_of").$type<TokenOf>().notNull(),
    token: text().notNull(),
    userId: int8("user_id").notNull(),
    method: text().notNull(),
    route: text(),
    path: text().notNull(),
    repositoryId: int8("repository_id"),
    outcome: text().$type<WriteOutcome>().default("unknown").notNull(),
    status: integer(),
    requestId: text("request_id").notNull(),
    upstreamRequestId: text("upstream_request_id"),
  },
  (table) => [
    index("writes_begun").on(table.begunAt),
    check("writes_check", sql`((outcome = 'answered'::text) = (status IS NOT NULL))`),
    check("writes_outcome_check", sql`(outcome = ANY (ARRAY['unknown'::text, 'answered'::text, 'unsent'::text]))`),
    check("writes_token_of_check", sql`(token_of = ANY (ARRAY['own'::text, 'upstream'::text]))`),
  ],
);

/** One row is one act that changed who may do what here or gave a secret away, or some refusals of one minute. */
export const auditLog = pgTable(
  "audit_log",
  {
    id: int8().primaryKey().generatedAlwaysAsIdentity(),
    at: timestamptz().notNull(),
    lastAt: timestamptz("last_at"),
    times: integer().default(1).notNull(),
    actorKind: text("actor_kind").notNull(),
    actor: text(),
    userId: int8("user_id"),
    address: text(),
    action: text().notNull(),
    object: text(),
    arguments: text().array().default([]).notNull(),
    outcome: text().default("unknown").notNull(),
    requestId: text("request_id"),
  },
  (table) => [
    index("audit_log_at").on(table.at, table.id),
    index("audit_log_kind").on(sql`split_part(action, '.'::text, 1)`, table.id),
    check("audit_log_action_check", sql`(action ~ '^[a-z][a-z_-]*(\\.[a-z][a-z_-]*)*$'::text)`),
    check(
      "audit_log_actor_kind_check",
      sql`(actor_kind = ANY (ARRAY['terminal'::text, 'operator'::text, 'own'::text, 'upstream'::text, 'stranger'::text]))`,
    ),
    check(
      "audit_log_outcome_check",
      sql`(outcome = ANY (ARRAY['unknown'::text, 'done'::text, 'failed'::text, 'refused'::text]))`,
    ),
    check("audit_log_times_check", sql`(times > 0)`),
  ],
);
