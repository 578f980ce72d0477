import type { Context } from "../../context.ts";
import { loadStatus, type RepositoryStatus } from "../../health/status.ts";
import { enqueueBackfill } from "../../queues/queues.ts";
import { QueueUnavailableError } from "../../queues/unavailable.ts";
import { restartBackfill } from "../../sync/backfill/backfill.ts";
import { tryAgain } from "../../sync/problems/problems.ts";
import { type Command, CommandError, type Given } from "../terminal/command.ts";
import { leavingSignal } from "../terminal/leaving.ts";
import { openInstance } from "../terminal/open-instance.ts";
import { counted, type Output } from "../terminal/output.ts";
import { findMatches, type MatchedRepository, readNames } from "../terminal/patterns.ts";
import { START } from "../terminal/typed.ts";
import { followBackfills } from "./follow-backfills.ts";

export const backfill: Command = {
  name: "backfill",
  takes: "[owner/name…]",
  flags: {
    again: "copy repositories that are live once more, page by page",
    "no-wait": "queue the copies, and do not follow them",
  },
  about: `
Queues the first full copy of the repositories, or of all that have none yet, and shows
how it comes along: resources a second, pages, quota left, time to go. Ends when all are
live (0) or one cannot be copied (1). The copying is done by the workers: Ctrl-C ends
only this view. What is unchanged since the last copy costs no quota.`,
  run: runBackfill,
};

async function runBackfill({ words, flags, env, resources, within }: Given, output: Output): Promise<number> {
  const names = readNames(words);
  const { ctx } = await openInstance(env, resources, within);
  const concerned = await choose(ctx, names, flags.has("again"));
  if (concerned.length === 0) {
    output.document({ event: "done", repositories: [] });
    output.line("Every repository is live: there is nothing to copy (--again copies once more)");
    return 0;
  }
  for (const repository of concerned) await queue(ctx, repository, { again: flags.has("again"), output });
  await refuseWithoutWorkers(ctx);
  if (flags.has("no-wait")) {
    output.document({ event: "queued", repositories: concerned.map(({ fullName }) => fullName) });
    output.line(
      `${counted(concerned.length, "copy", "copies")} queued: \`tain status\` shows how far ${concerned.length === 1 ? "it is" : "they are"}`,
    );
    return 0;
  }

  const leaving = leavingSignal(resources, within);
  const concernedNames = new Set(concerned.map(({ fullName }) => fullName));
  const repositories = await followBackfills(ctx, output, {
    concerns: ({ owner, name }) => concernedNames.has(`${owner}/${name}`),
    signal: leaving,
  });
  if (leaving.aborted) {
    output.note(
      "\ntain: the copying goes on in the workers; `tain backfill` follows it again, `tain status` shows how far it is",
    );
    return 130;
  }
  output.document({ event: "done", repositories });
  for (const { owner, name, state, problem } of repositories)
    output.line(`${owner}/${name}: ${state}${problem === null ? "" : `, ${problem}`}`);
  return repositories.every(({ state }) => state === "live") ? 0 : 1;
}

/**
 * The named repositories. Without names: all that are not live, or with `again` all. @throws CommandError for a name
 * that is not mirrored
 */
async function choose(ctx: Context, names: readonly string[], again: boolean): Promise<MatchedRepository[]> {
  if (names.length === 0) {
    const { repositories } = await loadStatus(ctx, async () => []);
    const wanted = repositories.filter(
      ({ state, name }) => name !== "*" && state !== "gone" && (again || state !== "live"),
    );
    const matches = await Promise.all(
      wanted.map(({ owner, name }: RepositoryStatus) => findMatches(ctx, `${owner}/${name}`.toLowerCase())),
    );
    return matches.flat().filter(({ state }) => state !== "gone");
  }
  const chosen: MatchedRepository[] = [];
  for (const name of names) {
    const [match] = (await findMatches(ctx, name)).filter(({ state }) => state !== "gone");
    if (!match) throw new CommandError(`${name} is not mirrored: \`tain add ${name}\` begins to`);
    if (match.state === "live" && !again)
      throw new CommandError(`${match.fullName} is live: its copy is complete (--again copies it once more)`);
    chosen.push(match);
  }
  return chosen;
}

async function queue(
  ctx: Context,
  { id, fullName, state }: MatchedRepository,
  { again, output }: { again: boolean; output: Output },
): Promise<void> {
  // A running copy is left alone: it would lose its place, and it reads everything anyway.
  if (again && state === "backfilling")
    output.note(`tain: ${fullName} is being copied right now: --again changes nothing`);
  else if ((again || state === "paused") && !(await restartBackfill(ctx, id)))
    throw new CommandError(`${fullName} is not mirrored any more: it was removed just now`);
  await tryAgain(ctx.db, { repositoryIds: [id] });
  try {
    await enqueueBackfill(ctx, { repositoryId: id });
  } catch (error) {
    if (!(error instanceof QueueUnavailableError)) throw error;
    throw new CommandError(`${error.message}: see that REDIS_URL is right and the server runs`, { cause: error });
  }
}

async function refuseWithoutWorkers({ queues }: Context): Promise<void> {
  const workers = await queues.backfill.getWorkers();
  if (workers.length > 0) return;
  const { waiting = 0 } = await queues.backfill.getJobCounts("waiting");
  throw new CommandError(
    `No worker is running: ${counted(waiting, "copy", "copies")} ${waiting === 1 ? "waits" : "wait"} in the queue until \`${START}\` brings one`,
  );
}
