import { sql } from "../../db/sql.ts";
import { beginsAsOurs, isTokenName } from "../api/callers/our-tokens.ts";
import { PERMISSIONS, type Permission } from "../api/callers/permissions.ts";
import {
  apiTokenId,
  createApiToken,
  type ListedToken,
  listApiTokens,
  revokeApiTokens,
  TokenNameTakenError,
  type TokenScope,
} from "../api/callers/tokens.ts";
import { duration } from "../config/values.ts";
import type { Context } from "../context.ts";
import { findUser, findUserByLogin } from "../mirror/read/users.ts";
import { fetchAndStoreViewer } from "../sync/following/viewer.ts";
import { noteAct } from "../work/audit-log.ts";
import { commandActor } from "./recorded.ts";
import { type Action, CommandError, type CommandGroup, type Given, listOf, UsageError } from "./terminal/command.ts";
import { openInstance } from "./terminal/open-instance.ts";
import { counted, type Output, spanOf, styled, tableLines } from "./terminal/output.ts";
import { findMatches, readPatterns } from "./terminal/patterns.ts";

const ID = /^[0-9a-f]{12}$/i;

const create: Action = {
  name: "token create",
  summary: "make a token, and print it once",
  values: {
    name: { takes: "NAME", about: "what lists and records call it, such as ci-bot: a-z, 0-9 and hyphens, 39 at most" },
    login: { takes: "LOGIN", about: "the user that it answers as (default: upstream's user of UPSTREAM_TOKEN)" },
    repos: {
      takes: "NAMES",
      about: "only these repositories beside the public ones: owner/name or owner/*, comma separated, all mirrored",
    },
    permissions: {
      takes: "KINDS",
      about:
        "only these kinds: metadata, issues, pull_requests, each with :read or :write, checks:read, statuses:read, contents:read, deployments:read, actions:read, hooks:write, comma separated",
    },
    limit: { takes: "N", about: "requests and points an hour of its own, or off (default: its user's common quota)" },
    expires: { takes: "WHEN", about: "a date (2027-01-31), or how long it is for (30d, 12h); default: never" },
  },
  flags: { write: "let it write all kinds: what it writes is done at upstream with UPSTREAM_TOKEN" },
  about: `
Makes a token for callers of the API and prints it, once: only its hash is kept. \`/user\` and
\`viewer\` answer as the user of --login, who has to be mirrored: a user is once they wrote,
own or do something in a mirrored repository. A token sees everything that is mirrored, unless
--repos names what it is for: then it sees those repositories and the public ones, and writes
only to those. They are known by their ids: a repository that is renamed stays, and another
that takes its name is not let in.

With --permissions it is answered as upstream answers a fine-grained token that was given the
same: --permissions issues:write,pull_requests:read. Who may write reads, too, and the
repositories themselves (metadata:read) are always shown. What is public is public. With
hooks:write it registers hooks here, which hear of everything that happens in its repositories.`,
  run: runCreate,
};

const list: Action = {
  name: "token list",
  summary: "the tokens that were made, and when each was last used",
  about: "Lists the tokens by id. The tokens themselves are not kept, and cannot be shown again.",
  run: runList,
};

const revoke: Action = {
  name: "token revoke",
  summary: "refuse tokens from now on",
  takes: "NAME|ID…",
  flags: { all: "all of them, in place of names" },
  about: `
Revokes tokens by their names or ids. Every process refuses them within ten seconds, for good. A leaked
token can be given in place of its name. The next \`npm start\` makes a new one where its own was
revoked.`,
  run: runRevoke,
};

export const token: CommandGroup = {
  name: "token",
  about: "Works on Tain's own tokens, which callers of its API show. Upstream's tokens are in UPSTREAM_TOKEN.",
  actions: { create, list, revoke },
};

async function runCreate({ flags, values, env, resources, within }: Given, output: Output): Promise<number> {
  const repos = values.get("repos");
  const patterns = repos === undefined ? null : readPatterns("token create --repos", repos.split(",").filter(Boolean));
  const name = readName(values.get("name"));
  const hourlyLimit = readHourlyLimit(values.get("limit"));
  const permissions = readPermissions(values.get("permissions"));
  if (permissions && flags.has("write"))
    throw new UsageError("--permissions says what it may write: leave out --write, or --permissions");
  const { ctx } = await openInstance(env, resources, within);
  const expiresAt = readExpiry(values.get("expires"), ctx.clock.now());
  const { userId, login } = await userNamed(ctx, values.get("login"));
  const canWrite = flags.has("write") || (permissions?.some((each) => each.endsWith(":write")) ?? false);
  const scope = patterns && (await tokenScope(ctx, patterns));
  const text = await createNamed(ctx, { userId, canWrite, name, permissions, scope, hourlyLimit, expiresAt });
  // Nobody has the token yet. If this fails nobody gets it.
  await noteAct(ctx, { actor: commandActor(within), action: "token.create", object: apiTokenId(text) }, "done");
  output.document({
    token: text,
    id: apiTokenId(text),
    name,
    login,
    userId,
    canWrite,
    permissions,
    repositories: patterns,
    hourlyLimit,
    expiresAt,
  });
  // The token is the only text on stdout, so that a script can read it.
  output.line(text);
  output.note(
    `tain: answers as ${login}, ${permissions ? `may ${mayOf({ canWrite, permissions })}` : canWrite ? "reads and writes" : "reads only"}${patterns ? `, for ${listOf(patterns, "and")}` : ""}${expiresAt ? `, until ${expiresAt.toISOString()}` : ""}; its id is ${apiTokenId(text)}${name === null ? "" : `, its name ${name}`}. It is shown this once`,
  );
  return 0;
}

/** @throws UsageError */
function readName(name: string | undefined): string | null {
  if (name === undefined) return null;
  if (isTokenName(name)) return name;
  throw new UsageError(
    ID.test(name)
      ? "--name takes no 12 hexadecimal digits: those are the id of a token"
      : `--name takes 1 to 39 of a-z, 0-9 and hyphens, and no hyphen first; such as ci-bot, and not ${JSON.stringify(name)}`,
  );
}

/** @throws CommandError for a name that is taken */
async function createNamed(ctx: Context, token: Parameters<typeof createApiToken>[1]): Promise<string> {
  try {
    return await createApiToken(ctx, token);
  } catch (error) {
    if (!(error instanceof TokenNameTakenError)) throw error;
    const { name } = token;
    throw new CommandError(
      `A token is called ${name} already: choose another name, or \`tain token revoke ${name}\` first. None was made`,
      { cause: error },
    );
  }
}

/** @throws UsageError */
function readHourlyLimit(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (text === "off") return 0;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UsageError(`--limit takes a number of requests an hour, or off, and not ${text}`);
}

/** Each permission once, without those that every token has. Null: all kinds. @throws UsageError */
function readPermissions(text: string | undefined): Permission[] | null {
  if (text === undefined) return null;
  const names = text.split(",").map((each) => each.trim());
  const unknown = names.find((name) => name !== "metadata:read" && !PERMISSIONS.some((each) => each === name));
  if (unknown !== undefined)
    throw new UsageError(
      `--permissions does not know ${JSON.stringify(unknown)}: write ${listOf(["metadata:read", ...PERMISSIONS], "or")}`,
    );
  const kinds = names.map((name) => name.split(":")[0]);
  const twice = kinds.find((kind, at) => kinds.indexOf(kind) !== at);
  if (twice !== undefined)
    throw new UsageError(`--permissions names ${twice} twice: write it once, as read or as write`);
  return PERMISSIONS.filter((each) => names.includes(each));
}

function mayOf({ canWrite, permissions }: Pick<ListedToken, "canWrite" | "permissions">): string {
  if (permissions === null) return canWrite ? "reads and writes" : "reads";
  return permissions.length === 0 ? "metadata:read" : permissions.join(", ");
}

/** @throws UsageError for a text that is no time, or a time in the past */
function readExpiry(text: string | undefined, now: Date): Date | null {
  if (text === undefined) return null;
  const span = /^\d+(s|m|h|d)$/.test(text) ? duration(text) : null;
  const isDate = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(text);
  const at = new Date(span !== null ? now.getTime() + span : isDate ? text : Number.NaN);
  if (Number.isNaN(at.getTime()))
    throw new UsageError(
      `--expires takes a date (2027-01-31, 2027-01-31T12:00:00Z) or how long it is for (30d, 12h), and not ${text}`,
    );
  if (at <= now) throw new UsageError(`--expires names a time that is over: ${text}`);
  return at;
}

/** @throws CommandError for a repository or account that is not mirrored */
async function tokenScope(ctx: Context, patterns: readonly string[]): Promise<TokenScope> {
  const repositoryIds: number[] = [];
  const ownerIds: number[] = [];
  for (const pattern of patterns) {
    const matches = (await findMatches(ctx, pattern)).filter(({ state }) => state !== "gone");
    const [first] = matches;
    if (!first) {
      throw new CommandError(
        `${pattern} is not mirrored, so no token can be for it: \`tain add ${pattern}\` first. None was made`,
      );
    }
    if (!pattern.endsWith("/*")) {
      repositoryIds.push(first.id);
      continue;
    }
    const rows = await ctx.db.query<{ id: number }>(sql`
      select distinct owner_id as id from repositories
        where id = any(${matches.map(({ id }) => id)}) and owner_id is not null`);
    ownerIds.push(...rows.map(({ id }) => id));
  }
  return { repositoryIds, ownerIds };
}

/**
 * @throws CommandError when no user of that name is known; upstream's errors when upstream has to be asked for its own
 *   user
 */
async function userNamed(ctx: Context, login: string | undefined): Promise<{ userId: number; login: string }> {
  const mirrored = login === undefined ? null : await findUserByLogin(ctx.db, login);
  if (mirrored) return { userId: mirrored.id, login: mirrored.login };

  const viewerId = await fetchAndStoreViewer(ctx);
  const viewer = await findUser(ctx.db, viewerId);
  if (!viewer) throw new Error("The viewer was read and is not stored");
  if (login === undefined || login.toLowerCase() === viewer.login.toLowerCase())
    return { userId: viewerId, login: viewer.login };
  throw new CommandError(
    `${login} is not a user that is mirrored: name one who takes part in a mirrored repository, or ${viewer.login}, whose UPSTREAM_TOKEN is`,
  );
}

async function runList({ env, resources, within }: Given, output: Output): Promise<number> {
  const { ctx } = await openInstance(env, resources, within);
  const tokens = await listApiTokens(ctx);
  output.document({ tokens });
  if (tokens.length === 0) output.line("There is no token yet: `tain token create` makes one");
  else output.line(tokensTable(tokens, ctx));
  return 0;
}

async function runRevoke({ words, flags, env, resources, within }: Given, output: Output): Promise<number> {
  const isAll = flags.has("all");
  if (isAll === words.length > 0)
    throw new UsageError("tain token revoke needs names or ids (`tain token list` has them), or --all in their place");
  // Another word may be a secret: do not repeat it.
  for (const word of words)
    if (!beginsAsOurs(word) && !ID.test(word) && !isTokenName(word))
      throw new UsageError("That is neither the name nor the id of a token: `tain token list` shows them");

  const { ctx } = await openInstance(env, resources, within);
  const known = await listApiTokens(ctx);
  const ids = isAll
    ? known.filter(({ revokedAt }) => revokedAt === null).map(({ id }) => id)
    : words.map((word) => (beginsAsOurs(word) ? apiTokenId(word) : idIn(known, word)));
  const missing = ids.filter((id) => !known.some((each) => each.id === id));
  if (missing.length > 0)
    throw new CommandError(
      `There is no token ${listOf(missing, "or")}: \`tain token list\` shows all. None was revoked`,
    );

  const revoked = await revokeApiTokens(ctx, ids);
  for (const { id } of revoked)
    await noteAct(ctx, { actor: commandActor(within), action: "token.revoke", object: id }, "done");
  output.document({ revoked });
  if (revoked.length > 0) output.line(tokensTable(revoked, ctx));
  output.line(`${counted(revoked.length, "token")} revoked; every process refuses them within ten seconds`);
  return 0;
}

/** The id of the token that the word names. Of several with one name, that which is not revoked or is the newest. */
function idIn(known: readonly ListedToken[], word: string): string {
  if (ID.test(word)) return word.toLowerCase();
  const named = known.filter(({ name }) => name === word);
  return (named.find(({ revokedAt }) => revokedAt === null) ?? named[0])?.id ?? word;
}

function tokensTable(tokens: readonly ListedToken[], { clock }: Pick<Context, "clock">): string {
  const now = clock.now().getTime();
  const ago = (at: Date | null) => (at === null ? "never" : `${spanOf(now - at.getTime())} ago`);
  const stateOf = ({ revokedAt, expiresAt }: ListedToken) => {
    if (revokedAt !== null) return styled("red", `revoked ${ago(revokedAt)}`);
    if (expiresAt === null) return styled("green", "valid");
    const leftMs = expiresAt.getTime() - now;
    return leftMs > 0 ? styled("green", `valid for ${spanOf(leftMs)}`) : styled("red", `expired ${ago(expiresAt)}`);
  };
  const rows = tokens.map((each) => {
    const { id, name, login, userId, repositories, hourlyLimit, createdAt, lastUsedAt } = each;
    return [
      id,
      name ?? "-",
      login ?? `user ${userId}`,
      mayOf(each),
      repositories?.join(", ") ?? "all",
      hourlyLimit === null ? "its user's" : hourlyLimit === 0 ? "none" : `${hourlyLimit}/h`,
      ago(createdAt),
      ago(lastUsedAt),
      stateOf(each),
    ];
  });
  return tableLines(["ID", "NAME", "ANSWERS AS", "MAY", "REPOSITORIES", "LIMIT", "MADE", "LAST USED", "STATE"], rows);
}
