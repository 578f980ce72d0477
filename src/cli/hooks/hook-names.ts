import type { Context } from "../../context.ts";
import { findInstallations } from "../../upstream/credentials/installations.ts";
import { CommandError } from "../terminal/command.ts";
import { findMatches, readNames } from "../terminal/patterns.ts";
import { findMirroredNames } from "./repository-hooks.ts";

/** The word that names the App's own webhook in place of a repository. */
export const APP_WORD = "app";

/** Reads the arguments: names of repositories, and `app`. @throws UsageError */
export function readHookNames(words: readonly string[]): string[] {
  const names = readNames(words.filter((word) => word !== APP_WORD));
  return words.includes(APP_WORD) ? [APP_WORD, ...names] : names;
}

/**
 * The hooks to work on: the named ones. Without names, the App's hook if there is an App, and the hooks of repositories
 * that it does not serve.
 * @param settle turns a written word into a name, or throws
 * @throws CommandError when `app` is written and there is none
 */
export async function findHookNames(
  ctx: Context,
  named: readonly string[],
  settle: (ctx: Context, word: string) => Promise<string> = todaysName,
): Promise<string[]> {
  const hasApp = ctx.config.appId !== null;
  if (named.includes(APP_WORD) && !hasApp)
    throw new CommandError("There is no App: set APP_ID and APP_PRIVATE_KEY, or name repositories");
  if (named.length > 0) return await Promise.all(named.map((name) => (name === APP_WORD ? name : settle(ctx, name))));
  const mirrored = await findMirroredNames(ctx);
  const ids = mirrored.map(({ id }) => id);
  const covering = hasApp ? await findInstallations(ctx.db, ids) : new Map<number, number>();
  const uncovered = mirrored.filter(({ id }) => !covering.get(id)).map(({ owner, name }) => `${owner}/${name}`);
  return hasApp ? [APP_WORD, ...uncovered] : uncovered;
}

/** The repository's present name. Under an older name, upstream would only redirect. */
async function todaysName(ctx: Context, word: string): Promise<string> {
  const [match] = await findMatches(ctx, word);
  return match?.fullName ?? word;
}
