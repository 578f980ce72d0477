import type { Json } from "../../json.ts";
import { resource } from "../contract/kind.ts";
import { users } from "./table.ts";

/** The keys of an account inside other things (GitHub's OpenAPI, simple-user). */
const SIMPLE_USER: ReadonlySet<string> = new Set(
  `login id node_id avatar_url gravatar_id url html_url followers_url following_url gists_url starred_url
  subscriptions_url organizations_url repos_url events_url received_events_url type user_view_type site_admin`.split(
    /\s+/,
  ),
);

export function isOfSimpleUser(key: string): boolean {
  return SIMPLE_USER.has(key);
}

/**
 * Whether an account of this type may have a name. In GitHub's GraphQL schema `Bot` and `Mannequin` have none. Null: the
 * type was never told.
 */
export function mayHaveName(type: Json | undefined): boolean {
  return type !== "Bot" && type !== "Mannequin";
}

export const user = resource("user", users, {
  isGlobal: true,
  needed: ["login"],
  upstream: { path: (id) => `/user/${id}` },
  isVersioned: false,
  inPayload: (document) =>
    Object.fromEntries([...SIMPLE_USER].flatMap((key) => (document[key] === undefined ? [] : [[key, document[key]]]))),
});
