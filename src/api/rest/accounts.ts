import { type Fields, objectOf, parseStored } from "../../json.ts";
import { ONES_OWN } from "../../mirror/documents/documents.ts";
import { findOwnedRepositories, type RepositorySort } from "../../mirror/read/repository-lists.ts";
import { findUser, findUserByLogin, type UserRow } from "../../mirror/read/users.ts";
import { type Answer, type ApiContext, type Call, ok } from "../call/call.ts";
import { showFields } from "../call/view.ts";
import { ApiFault, type FieldFault, notFound, unmirrored, unshown } from "../dialect/fault.ts";
import { choice, sentChoice, sentDirection } from "../dialect/protocol.ts";
import { shownByUpstream } from "../forward/as-caller.ts";
import { storeShown } from "../forward/store-shown.ts";
import { askedPage, numberParam, pageDb, repositoryPage } from "./page.ts";

/** The keys that only an organisation's own page has. */
const ORGANIZATION_KEYS: readonly string[] = [
  "hooks_url",
  "issues_url",
  "members_url",
  "public_members_url",
  "description",
  "is_verified",
  "has_organization_projects",
  "has_repository_projects",
  "archived_at",
];

/** An organisation as anyone sees it, in the service's order (GitHub's OpenAPI, organization-full). */
const SHOWN_OF_ORGANIZATIONS: readonly string[] = [
  "login",
  "id",
  "node_id",
  "url",
  "repos_url",
  "events_url",
  "hooks_url",
  "issues_url",
  "members_url",
  "public_members_url",
  "avatar_url",
  "description",
  "name",
  "company",
  "blog",
  "location",
  "email",
  "twitter_username",
  "is_verified",
  "has_organization_projects",
  "has_repository_projects",
  "public_repos",
  "public_gists",
  "followers",
  "following",
  "html_url",
  "created_at",
  "updated_at",
  "archived_at",
  "type",
];

/** Answers `/users/{username}` and `/user/{account_id}`. */
export async function getUser(call: Call): Promise<Answer> {
  const known = await requireAccount(call);
  const theirs = await shownToCaller(call, known, "user");
  if (theirs) return theirs;
  const account = await fetchAndStoreWhole(call, known, "user");
  return ok(await showToAll(call, account), { lastModified: account.updatedAt, confirmedAt: account.seenAt });
}

/**
 * The account as anyone sees it. Upstream tells an account more about itself than it tells others, and the mirror may
 * have read that with its own token. Callers are other people, even where their token answers as that account.
 */
export async function showToAll(call: Call, { document }: Pick<UserRow, "document">): Promise<string> {
  const fields = await showFields(call, { repositoryId: 0, document });
  for (const key of ORGANIZATION_KEYS) delete fields[key];
  const isOwn = Object.keys(parseStored<Fields>(document)).some((key) => ONES_OWN.test(key));
  // Upstream told this address to the account itself and may hide it from others, so none is shown.
  if (isOwn && "email" in fields) fields.email = null;
  if ("user_view_type" in fields) fields.user_view_type = "public";
  return JSON.stringify(fields);
}

/** Answers `/orgs/{org}` and `/organizations/{organization_id}`. */
export async function getOrganization(call: Call): Promise<Answer> {
  const known = await requireOrganization(call);
  const theirs = await shownToCaller(call, known, "organization");
  if (theirs) return theirs;
  const account = await fetchAndStoreWhole(call, known, "organization");
  const fields = await showFields(call, { repositoryId: 0, document: account.document });
  const url = `${call.api}/orgs/${account.login}`;
  Object.assign(fields, { url, repos_url: `${url}/repos`, events_url: `${url}/events` });
  const shown = SHOWN_OF_ORGANIZATIONS.filter((key) => key in fields).map((key) => [key, fields[key]]);
  return ok(JSON.stringify(Object.fromEntries(shown)), {
    lastModified: account.updatedAt,
    confirmedAt: account.seenAt,
  });
}

async function requireAccount({ ctx, params }: Call): Promise<UserRow> {
  const id = params.id === undefined ? undefined : numberParam(params.id);
  const found =
    id === undefined
      ? await findUserByLogin(ctx.db, params.login ?? "")
      : id === null
        ? null
        : await findUser(ctx.db, id);
  if (!found) throw unshown();
  return found;
}

export async function requireOrganization(call: Call): Promise<UserRow> {
  const account = await requireAccount(call);
  if (account.type !== "Organization") throw unshown();
  return account;
}

type AccountExtent = "user" | "organization";

/** A key that upstream's whole answer has and nothing embedded elsewhere. */
const WHOLE_KEY: Readonly<Record<AccountExtent, string>> = { user: "bio", organization: "members_url" };

/**
 * The account with all that its own page shows. The mirror sees accounts inside repositories, where upstream shows
 * little of them. So upstream is asked for the rest on the first request for it.
 */
export async function fetchAndStoreWhole(call: Call, account: UserRow, extent: AccountExtent): Promise<UserRow> {
  if (!isToBeAsked(call, account, extent)) return account;
  const { ctx } = call;
  const path = accountPath(account, extent);
  if (ctx.unshownAccounts.has(path)) throw notFound();
  const answer = await ctx.upstream.get(call.caller, path);
  if (answer.kind !== "ok") {
    ctx.unshownAccounts.set(path, true);
    throw notFound();
  }
  await storeAccount(ctx, extent, answer);
  return (await findUser(ctx.db, account.id)) ?? account;
}

function isToBeAsked({ isFresh }: Call, { document }: UserRow, extent: AccountExtent): boolean {
  return isFresh || !(WHOLE_KEY[extent] in parseStored<Fields>(document));
}

function accountPath({ id }: UserRow, extent: AccountExtent): string {
  return extent === "user" ? `/user/${id}` : `/organizations/${id}`;
}

/**
 * Shows the caller, by their own token, what upstream has to be asked for. Upstream may show others less, so nothing is
 * kept. Null: the mirror has it, or the caller has no token of upstream's.
 */
async function shownToCaller(call: Call, account: UserRow, extent: AccountExtent): Promise<Answer | null> {
  const { caller } = call;
  if (caller.kind !== "user" || caller.by.of !== "upstream" || !isToBeAsked(call, account, extent)) return null;
  const answer = await shownByUpstream(call, caller.by, accountPath(account, extent));
  if ("shown" in answer) return answer.shown;
  if (answer.status < 500 && answer.status !== 429 && answer.status !== 403 && answer.status !== 401) throw notFound();
  throw new ApiFault(502, `Upstream had to be asked for this, and it refuses with ${answer.status}.`);
}

async function storeAccount(
  ctx: ApiContext,
  extent: AccountExtent,
  answer: Parameters<typeof storeShown>[2],
): Promise<void> {
  if (extent === "user") return storeShown(ctx, "user", answer);
  // Under these keys an organisation's own page has other addresses than everything that embeds it.
  const { url: _url, repos_url: _repos, events_url: _events, ...body } = objectOf(answer.body);
  return storeShown(ctx, "user", { ...answer, body, validator: null });
}

const REPOSITORY_SORTS = ["created", "updated", "pushed", "full_name"] as const;

/**
 * The order of a list of repositories. Any other word than a sort means `created`. By name the first comes first, and
 * by time the last, unless the list says otherwise.
 * @param unsent the order without a sort
 * @param odd what any other word than a direction means
 */
export function repositoryOrder(
  query: URLSearchParams,
  unsent: { sort: RepositorySort; direction: "asc" | "desc" },
  odd: "asc" | "desc",
): { sort: RepositorySort; direction: "asc" | "desc" } {
  const asked = sentChoice(query, "sort", REPOSITORY_SORTS, "created");
  const usual = asked === null ? unsent.direction : asked === "full_name" ? "asc" : "desc";
  return { sort: asked ?? unsent.sort, direction: sentDirection(query, odd) ?? usual };
}

/** GitHub docs: "Lists public repositories for the specified user", for every caller. */
export async function listUserRepositories(call: Call): Promise<Answer> {
  const { query } = call;
  if (choice(query, "type", ["owner", "all", "member"]) === "member") throw unmirrored(MEMBERSHIP);
  const account = await requireAccount(call);
  const order = repositoryOrder(query, { sort: "full_name", direction: "asc" }, "desc");
  return repositoriesPage(call, `/user/${account.id}/repos`, account, "public", order);
}

export async function listOrganizationRepositories(call: Call): Promise<Answer> {
  const { query } = call;
  const type = choice(query, "type", ["all", "public", "private", "forks", "sources", "member"]);
  if (type === "member") throw unmirrored(MEMBERSHIP);
  const account = await requireOrganization(call);
  // The repositories of one owner have the same order by their names as by their full names.
  if (query.get("sort") === "name") query.set("sort", "full_name");
  const order = repositoryOrder(query, { sort: "created", direction: "asc" }, "asc");
  return repositoriesPage(call, `/organizations/${account.id}/repos`, account, type, order);
}

/**
 * The fault of a filter by membership, which is not mirrored: an answer would claim that there are no such
 * repositories.
 */
const MEMBERSHIP: FieldFault = {
  value: "member",
  resource: "Repository",
  field: "type",
  code: "custom",
  message: "Who is a member of what is not mirrored",
};

async function repositoriesPage(
  call: Call,
  path: string,
  account: UserRow,
  only: Parameters<typeof findOwnedRepositories>[2]["only"],
  order: ReturnType<typeof repositoryOrder>,
): Promise<Answer> {
  const { rows, total } = await findOwnedRepositories(
    pageDb(call),
    account.id,
    { only, access: call.access },
    { ...order, ...askedPage(call.query) },
  );
  return repositoryPage({ ...call, path }, rows, total);
}
