import { type Fields, parseStored } from "../../json.ts";
import { findAssignees } from "../../mirror/read/users.ts";
import type { Answer, RepositoryCall } from "../call/call.ts";
import { notFound } from "../dialect/fault.ts";
import { askedPage, numberedPage, pageDb } from "./page.ts";

/** People who can be assigned, as far as the mirror knows. */
export async function listAssignees(call: RepositoryCall): Promise<Answer> {
  const { rows, total } = await findAssignees(pageDb(call), call.repository.id, askedPage(call.query));
  const documents = rows.map(({ document }) => ({ repositoryId: 0, document: embedded(document) }));
  return numberedPage(call, documents, total);
}

/** 204 when the person can be assigned, 404 when not, as far as the mirror knows. */
export async function checkAssignee(call: RepositoryCall): Promise<Answer> {
  const login = call.params.assignee ?? "";
  const { total } = await findAssignees(call.ctx.db, call.repository.id, { login, limit: 1, offset: 0 });
  if (total === 0) throw notFound();
  return { status: 204, body: null };
}

/** An account as the service shows it inside other things (GitHub's OpenAPI, simple-user). */
const SIMPLE_USER_KEYS: ReadonlySet<string> = new Set([
  "login",
  "id",
  "node_id",
  "avatar_url",
  "gravatar_id",
  "url",
  "html_url",
  "followers_url",
  "following_url",
  "gists_url",
  "starred_url",
  "subscriptions_url",
  "organizations_url",
  "repos_url",
  "events_url",
  "received_events_url",
  "type",
  "user_view_type",
  "site_admin",
]);

function embedded(document: string): string {
  const fields = Object.entries(parseStored<Fields>(document)).filter(([key]) => SIMPLE_USER_KEYS.has(key));
  return JSON.stringify(Object.fromEntries(fields));
}
