import type { NodeKind } from "../world/node-id.ts";
import type { User } from "../world/records.ts";
import { type Json, time, type View } from "./view.ts";

/** simple-user, as nested everywhere. Accounts that are gone are shown as the ghost. */
export function simpleUser(view: View, id: number): Json {
  const shown = view.people.get(id);
  if (shown) return shown;
  const user = view.world.user(id);
  const json = accountAs(view, user, user.login);
  view.people.set(id, json);
  return json;
}

/** The author of a comment. The bots of some Apps have another login there, and the same id. */
export function commentAuthor(view: View, id: number | null): Json | null {
  const { loginInComments } = id === null ? { loginInComments: null } : view.world.user(id);
  if (id === null || loginInComments === null) return simpleUserOrNull(view, id);
  return accountAs(view, view.world.user(id), loginInComments);
}

function accountAs(view: View, user: User, login: string): Json {
  const url = `${view.apiUrl}/users/${encodeURIComponent(login)}`;
  const page =
    user.type === "Bot" ? `${view.htmlUrl}/apps/${user.login.replace("[bot]", "")}` : `${view.htmlUrl}/${user.login}`;
  return {
    login,
    id: user.id,
    node_id: view.world.nodeId(user.type satisfies NodeKind, user, undefined, view.nextIds),
    avatar_url: `https://avatars.githubusercontent.com/u/${user.id}?v=4`,
    gravatar_id: "",
    url,
    html_url: page,
    followers_url: `${url}/followers`,
    following_url: `${url}/following{/other_user}`,
    gists_url: `${url}/gists{/gist_id}`,
    starred_url: `${url}/starred{/owner}{/repo}`,
    subscriptions_url: `${url}/subscriptions`,
    organizations_url: `${url}/orgs`,
    repos_url: `${url}/repos`,
    events_url: `${url}/events{/privacy}`,
    received_events_url: `${url}/received_events`,
    type: user.type,
    user_view_type: "public",
    site_admin: user.siteAdmin,
  };
}

export function simpleUserOrNull(view: View, id: number | null): Json | null {
  return id === null ? null : simpleUser(view, id);
}

/** public-user: what `/users/{u}` shows to anyone. */
export function publicUser(view: View, user: User): Json {
  const owned = ownedRepositories(view, user);
  return {
    ...simpleUser(view, user.id),
    name: user.name,
    company: user.company,
    blog: user.blog ?? "",
    location: user.location,
    email: null,
    hireable: null,
    bio: user.bio,
    twitter_username: null,
    public_repos: owned.filter((repository) => repository.visibility === "public").length,
    public_gists: 0,
    followers: 0,
    following: 0,
    created_at: time(user.createdAt),
    updated_at: time(user.updatedAt),
  };
}

/** private-user: what `/user` shows to the account itself, given the scope `user`. */
export function privateUser(view: View, user: User): Json {
  const hidden = ownedRepositories(view, user).filter((repository) => repository.visibility !== "public").length;
  return {
    ...publicUser(view, user),
    user_view_type: "private",
    email: user.email,
    notification_email: user.email,
    private_gists: 0,
    total_private_repos: hidden,
    owned_private_repos: hidden,
    disk_usage: ownedRepositories(view, user).reduce((sum, repository) => sum + repository.size, 0),
    collaborators: 0,
    two_factor_authentication: true,
    plan: { name: "free", space: 976_562_499, collaborators: 0, private_repos: 10_000 },
  };
}

/** organization-full, without what only its owners see. */
export function organization(view: View, user: User): Json {
  const url = `${view.apiUrl}/orgs/${user.login}`;
  return {
    login: user.login,
    id: user.id,
    node_id: view.world.nodeId("Organization", user, undefined, view.nextIds),
    url,
    repos_url: `${url}/repos`,
    events_url: `${url}/events`,
    hooks_url: `${url}/hooks`,
    issues_url: `${url}/issues`,
    members_url: `${url}/members{/member}`,
    public_members_url: `${url}/public_members{/member}`,
    avatar_url: `https://avatars.githubusercontent.com/u/${user.id}?v=4`,
    description: user.bio,
    name: user.name,
    company: user.company,
    blog: user.blog ?? "",
    location: user.location,
    email: user.email,
    twitter_username: null,
    is_verified: false,
    has_organization_projects: true,
    has_repository_projects: true,
    public_repos: ownedRepositories(view, user).filter((repository) => repository.visibility === "public").length,
    public_gists: 0,
    followers: 0,
    following: 0,
    html_url: `${view.htmlUrl}/${user.login}`,
    created_at: time(user.createdAt),
    updated_at: time(user.updatedAt),
    archived_at: null,
    type: "Organization",
  };
}

function ownedRepositories(view: View, user: User) {
  return [...view.world.repositories.values()].filter((repository) => repository.ownerId === user.id);
}
