import { resource } from "../contract/kind.ts";
import { users } from "./table.ts";

const SIMPLE_USER =
  `login id node_id avatar_url gravatar_id url html_url followers_url following_url gists_url starred_url
  subscriptions_url organizations_url repos_url events_url received_events_url type user_view_type site_admin`.split(
    /\s+/,
  );

export const user = resource("user", users, {
  isGlobal: true,
  needed: ["login"],
  upstream: { path: (id) => `/user/${id}` },
  isVersioned: false,
  inPayload: (document) =>
    Object.fromEntries(SIMPLE_USER.flatMap((key) => (document[key] === undefined ? [] : [[key, document[key]]]))),
});
