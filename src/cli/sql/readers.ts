import { randomBytes } from "node:crypto";
import { createReader, dropReader, isReaderName, type LimitedReader, listReaders } from "../../../db/readers.ts";
import type { Context } from "../../context.ts";
import { codeOf, reasonOf } from "../../failure.ts";
import { type Action, CommandError, type CommandGroup, type Given, listOf, UsageError } from "../terminal/command.ts";
import { openInstance } from "../terminal/open-instance.ts";
import { type Output, plain, styled, tableLines } from "../terminal/output.ts";
import { findMatches, readNames } from "../terminal/patterns.ts";

const create: Action = {
  name: "readers create",
  summary: "make a role that reads some repositories only, and print its address once",
  takes: "NAME",
  values: { repos: { takes: "NAMES", about: "owner/name, comma separated, all mirrored" } },
  about: `
Makes a role of Postgres that logs in, and prints the address to connect to, with its password. The
role sees rows of its repositories through the views of tain_v1, and no table. Repositories are known
by their ids: one that is renamed stays. Its queries may take a minute, and write nothing. The address is
that of the first of DATABASE_REPLICA_URLS, if there is one.`,
  run: runCreate,
};

const list: Action = {
  name: "readers list",
  summary: "the roles that read some repositories only, and which",
  about: "Lists the roles by name. Roles of tain_reader, which read all repositories, are not among them.",
  run: runList,
};

const drop: Action = {
  name: "readers drop",
  summary: "remove such a role",
  takes: "NAME",
  about: "Drops the role. Connections that it has open see no row from then on.",
  run: runDrop,
};

export const readers: CommandGroup = {
  name: "readers",
  about: "Works on roles of Postgres that read some repositories in SQL: see docs/sql.md.",
  actions: { create, list, drop },
};

async function runCreate({ words, values, env, resources, within }: Given, output: Output): Promise<number> {
  const name = readName("create", words);
  const names = readNames((values.get("repos") ?? "").split(",").filter(Boolean));
  if (names.length === 0)
    throw new UsageError("tain readers create needs to know what the role may read: --repos owner/name");
  const { ctx } = await openInstance(env, resources, within);
  const repositoryIds = await idsOf(ctx, names);
  const password = randomBytes(24).toString("hex");
  let mayLock: boolean;
  try {
    ({ mayLock } = await createReader(ctx.db, { name, password, repositoryIds }));
  } catch (error) {
    if (codeOf(error) === "42710")
      throw new CommandError(`There is a role ${name} already: \`tain readers list\` shows what it may read`, {
        cause: error,
      });
    throw refusedMaking(error);
  }
  const { databaseReplicaUrls, databaseDirectUrl, databaseUrl } = ctx.config;
  const [replica] = databaseReplicaUrls;
  // Replicas have the role as well, and whoever hinders one hinders no delivery.
  const url = new URL(replica ?? databaseDirectUrl ?? databaseUrl);
  url.username = name;
  url.password = password;
  output.document({ role: name, url: url.href, repositories: names });
  // The address is the only text on stdout, so that a script can read it.
  output.line(url.href);
  output.note(`tain: ${name} reads ${listOf(names)}. The password is shown this once`);
  if (replica === undefined)
    output.note(
      "tain: Give it to people you trust with the server, or set DATABASE_REPLICA_URLS: a login can take more than it is shown (docs/security.md)",
    );
  if (mayLock)
    output.note(
      `tain: ${name} can lock tables, and so stop the mirror: let the schema's owner run \`revoke usage on schema public from public\``,
    );
  return 0;
}

async function runList({ env, resources, within }: Given, output: Output): Promise<number> {
  const { ctx } = await openInstance(env, resources, within);
  const readers = await listReaders(ctx.db);
  output.document({ readers });
  if (readers.length === 0) output.line("No role reads some repositories only: `tain readers create` makes one");
  else output.line(readersTable(readers));
  return 0;
}

async function runDrop({ words, env, resources, within }: Given, output: Output): Promise<number> {
  const name = readName("drop", words);
  const { ctx } = await openInstance(env, resources, within);
  const reader = (await listReaders(ctx.db)).find(({ role }) => role === name);
  if (!reader)
    throw new CommandError(`${name} is no role that reads some repositories only: \`tain readers list\` shows them`);
  try {
    await dropReader(ctx.db, reader);
  } catch (error) {
    if (codeOf(error) === "2BP01")
      throw new CommandError(
        `${name} owns something, or was given other rights: \`drop owned by ${name}\` first. Nothing was changed`,
        { cause: error },
      );
    throw refusedMaking(error);
  }
  output.document({ dropped: name });
  output.line(`${name} is dropped, and reads nothing any more`);
  return 0;
}

/** @throws UsageError */
function readName(action: string, [name, ...more]: readonly string[]): string {
  if (name === undefined || more.length > 0) throw new UsageError(`tain readers ${action} takes the name of one role`);
  if (isReaderName(name)) return name;
  throw new UsageError(
    `${name} is no name for a reader: use small letters, digits and _, and begin with neither pg_ nor tain_`,
  );
}

/** @throws CommandError for a repository that is not mirrored */
async function idsOf(ctx: Context, names: readonly string[]): Promise<number[]> {
  const ids: number[] = [];
  for (const name of names) {
    const match = (await findMatches(ctx, name)).find(({ state }) => state !== "gone");
    if (!match) throw new CommandError(`${name} is not mirrored: \`tain add ${name}\` first. No role was made`);
    ids.push(match.id);
  }
  return [...new Set(ids)];
}

/** The user of DATABASE_URL may not make or drop roles; any other error stays as it is. */
function refusedMaking(error: unknown): unknown {
  if (codeOf(error) !== "42501") return error;
  return new CommandError(
    `The user of DATABASE_URL may not do this (${reasonOf(error)}): it has to own the tables and to have createrole. Nothing was changed`,
    { cause: error },
  );
}

/** Pure but for colours. */
function readersTable(readers: readonly LimitedReader[]): string {
  const rows = readers.map(({ role, repositories, isThere }) => [
    plain(role),
    repositories.map(plain).join(", "),
    isThere ? "" : styled("red", "the role is gone"),
  ]);
  return tableLines(["ROLE", "READS", ""], rows);
}
