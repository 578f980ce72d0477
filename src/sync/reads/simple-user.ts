import type { Fields, Json } from "../../json.ts";

/** What REST's simple user shows that does not follow from the login. */
interface Account {
  login: string;
  id: number;
  nodeId: Json;
  avatarUrl: Json;
  htmlUrl: Json;
  /** User, Bot, Organization … */
  type: string;
  isSiteAdmin: boolean;
}

/** REST's simple user, with the addresses below `api`. Pure. */
export function simpleUser({ login, id, nodeId, avatarUrl, htmlUrl, type, isSiteAdmin }: Account, api: string): Fields {
  const url = `${api}/users/${encodeURIComponent(login)}`;
  return {
    login,
    id,
    node_id: nodeId,
    avatar_url: avatarUrl,
    gravatar_id: "",
    url,
    html_url: htmlUrl,
    followers_url: `${url}/followers`,
    following_url: `${url}/following{/other_user}`,
    gists_url: `${url}/gists{/gist_id}`,
    starred_url: `${url}/starred{/owner}{/repo}`,
    subscriptions_url: `${url}/subscriptions`,
    organizations_url: `${url}/orgs`,
    repos_url: `${url}/repos`,
    events_url: `${url}/events{/privacy}`,
    received_events_url: `${url}/received_events`,
    type,
    user_view_type: "public",
    site_admin: isSiteAdmin,
  };
}
