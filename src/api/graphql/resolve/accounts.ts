import { sql } from "../../../../db/sql.ts";
import type { Fields, Json } from "../../../json.ts";
import { appOf } from "../../../mirror/documents/bots.ts";
import * as sources from "../../../mirror/read/repository-lists.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Node } from "../call/node.ts";
import { typedError } from "../run/errors.ts";
import { type PageArguments, storedConnection } from "./connection.ts";
import { databaseId, fieldNotHeld, nodeId, type Resolver, resourcePath, rest, type TypeResolvers } from "./fields.ts";

const actor: TypeResolvers = {
  id: nodeId,
  databaseId,
  // REST shows a bot by one login or another, GraphQL by its App's name.
  login: ({ kind, rest: { login, html_url } }) =>
    kind === "Bot" ? (appOf(html_url) ?? String(login).replace(/\[bot\]$/, "")) : login,
  url: rest("html_url"),
  resourcePath,
  avatarUrl: ({ rest: account }, { size }: { size?: number | null }) => avatarOf(account, size),
};

/** The address of an account's picture in this size. */
export function avatarOf({ avatar_url: address }: Fields, size: number | null | undefined): Json | undefined {
  const url = URL.parse(String(address));
  if (!url) return address;
  if (size != null) url.searchParams.set("s", String(size));
  return url.href;
}

/** A field that what embeds an account does not show. The mirror knows what it read of the single account. */
const profile =
  (
    key: string,
    { show = (value) => value, isAsked = false }: { show?: (value: Json) => Json; isAsked?: boolean } = {},
  ): Resolver =>
  ({ rest, kind }, _args, call, info) => {
    const id = Number(rest.id);
    const held = (account: Fields | null | undefined) => {
      const value = account?.[key];
      return value === undefined ? fieldNotHeld(call, info, kind) : show(value);
    };
    const shown = (account: Fields | null | undefined) =>
      account?.[key] === undefined && isAsked && call.beyond === null ? call.askedName(id).then(held) : held(account);
    if (key in rest) return shown(rest);
    const known = call.knownUser(id);
    return known === undefined ? call.user(id).then((found) => shown(found?.rest)) : shown(known);
  };

/** The mirror knows it of most accounts (`sync/people/names.ts`), and asks if a caller may not be handed to upstream. */
const name = profile("name", { isAsked: true });

const profiles: TypeResolvers = {
  createdAt: profile("created_at"),
  updatedAt: profile("updated_at"),
  location: profile("location"),
  twitterUsername: profile("twitter_username"),
  websiteUrl: profile("blog", { show: (blog) => blog || null }),
};

/** Which address an account shows may depend on who asks, so a caller's own token asks upstream. */
const email =
  (none: "" | null): Resolver =>
  (node, args, call, info) => {
    call.lacks();
    return profile("email", { show: (address) => address ?? none, isAsked: true })(node, args, call, info);
  };

const repositoryOwner: TypeResolvers = {
  repositories: (node, args: PageArguments & sources.RepositoriesArguments, call, info) => {
    call.hasPart();
    const source = sources.repositories(call.caller.userId, call.access, args);
    const connection = storedConnection(call, info, args, {
      kind: "Repository",
      source,
      parent: { r: Number(node.rest.id), n: 0 },
    });
    return { ...connection, totalDiskUsage: () => connection.sum(sql`coalesce(r.size, 0)`) };
  },
  repository: (node, { name, followRenames }: { name: string; followRenames?: boolean | null }, call) =>
    call.requireRepository(String(node.rest.login), name, followRenames ?? true),
};

export const accountResolvers: Readonly<Record<string, TypeResolvers>> = {
  User: {
    ...actor,
    ...repositoryOwner,
    ...profiles,
    name,
    email: email(""),
    bio: profile("bio"),
    company: profile("company", { isAsked: true }),
    isSiteAdmin: ({ rest: { site_admin } }) => site_admin === true,
    isViewer: ({ rest: { id } }, _args, call) => id === call.caller.userId,
  },
  Organization: {
    ...actor,
    ...repositoryOwner,
    ...profiles,
    name,
    email: email(null),
    description: profile("description"),
    isVerified: profile("is_verified", { show: (is) => is === true }),
  },
  Bot: actor,
  Mannequin: actor,
};

export function ownsRepositories({ kind }: Node): boolean {
  return kind === "User" || kind === "Organization";
}

/** The account of this login. @throws GraphQLError NOT_FOUND for an account that is unknown, or of another kind */
export async function accountNamed(
  call: GraphqlCall,
  login: string,
  what: string,
  isWanted: (kind: string) => boolean,
): Promise<Node> {
  const found = await call.userNamed(login);
  if (found && isWanted(found.kind)) return found;
  call.lacks();
  throw typedError(
    "NOT_FOUND",
    `Could not resolve to ${what === "User" ? "a User" : "an Organization"} with the login of '${login}'.`,
  );
}
