import { exceptionIn } from "../../config/values.ts";
import type { Context } from "../../context.ts";
import { selections } from "../../schema.ts";
import { removeSelection } from "../../sync/following/removal.ts";
import { type Command, CommandError, type Given } from "../terminal/command.ts";
import { openInstance } from "../terminal/open-instance.ts";
import type { Output } from "../terminal/output.ts";
import { readTracked } from "../terminal/patterns.ts";
import { typed } from "../terminal/typed.ts";

export const remove: Command = {
  name: "remove",
  takes: "PATTERN…",
  flags: { purge: "delete what was copied, too" },
  about: `
Stops mirroring what the patterns name: \`owner/name\`, or \`'owner/*'\`. What was copied is
kept in the database, though served no more, and \`tain add\` brings it back; --purge
deletes it. The webhook at upstream stays, and what it still sends is ignored: \`tain hooks
remove\` deletes it. One repository of \`'owner/*'\` is excepted by \`tain add '!owner/name'\`;
\`tain remove '!owner/name'\` ends that.`,
  run: runRemove,
};

interface Removed {
  pattern: string;
  /** The full names of the repositories that were mirrored because of the pattern. */
  repositories: string[];
  rows: "kept" | "deleted";
  /** Whether the pattern itself was a selection. */
  wasWished: boolean;
  warning: string | null;
}

async function runRemove({ words, flags, env, resources, within }: Given, output: Output): Promise<number> {
  const patterns = readTracked("remove", words);
  const purge = flags.has("purge");
  const { ctx } = await openInstance(env, resources, within);
  await refuseCovered(ctx, patterns);

  const removed: Removed[] = [];
  for (const pattern of patterns) {
    const wasWished = (await selectedPatterns(ctx)).includes(pattern);
    const repositories = await removeSelection(ctx, pattern, { purge });
    const warning = ctx.config.repositories.includes(pattern)
      ? `REPOSITORIES still names ${pattern}: take it out there, or it is mirrored again within seconds`
      : null;
    removed.push({ pattern, repositories, rows: purge ? "deleted" : "kept", wasWished, warning });
  }
  output.document({ removed });
  for (const { pattern, repositories, wasWished, warning } of removed) {
    for (const repository of repositories) {
      output.line(
        `${repository}: ${purge ? "removed, and what was copied is deleted" : "removed; what was copied is kept (--purge deletes it)"}`,
      );
    }
    if (repositories.length === 0 && wasWished)
      output.line(
        exceptionIn(pattern) === null
          ? `${pattern}: removed; nothing had been copied`
          : `${pattern}: no exception any more; what covers the repository brings it back within a minute`,
      );
    if (repositories.length === 0 && !wasWished)
      output.note(`tain: ${pattern} is not mirrored: \`tain status\` lists what is`);
    if (warning !== null) output.note(`tain: ${warning}`);
  }
  return removed.every(({ repositories, wasWished }) => repositories.length > 0 || wasWished) ? 0 : 1;
}

/** A single repository cannot be removed while its whole owner is selected: that selection would bring it back. */
async function refuseCovered(ctx: Context, patterns: readonly string[]): Promise<void> {
  const selected = [...(await selectedPatterns(ctx)), ...ctx.config.repositories];
  for (const pattern of patterns) {
    const all = `${pattern.split("/")[0]}/*`;
    if (pattern === all || !selected.includes(all) || patterns.includes(all)) continue;
    throw new CommandError(
      `${pattern} is mirrored because of ${all}: except it by \`${typed(`add '!${pattern}'`)}\`. Nothing was removed`,
    );
  }
}

async function selectedPatterns({ db }: Pick<Context, "db">): Promise<string[]> {
  const rows = await db.select({ pattern: selections.pattern }).from(selections);
  return rows.map(({ pattern }) => pattern);
}
