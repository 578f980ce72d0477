import { forgetSubscription } from "../../sync/following/hook-subscriptions.ts";
import { deleteRepositoryHook, listRepositoryHooks } from "../../upstream/hooks/hooks.ts";
import { type Action, type Given, UsageError } from "../terminal/command.ts";
import { openInstance } from "../terminal/open-instance.ts";
import type { Output } from "../terminal/output.ts";
import { findMatches, readNames } from "../terminal/patterns.ts";
import { APP_WORD, findHookNames } from "./hook-names.ts";
import { findHooked } from "./own-secret.ts";
import { needAddress, orRefusal } from "./repository-hooks.ts";

export const remove: Action = {
  name: "hooks remove",
  summary: "delete our hooks at upstream",
  takes: "owner/name…",
  about: `
Deletes the hook that sends to this instance; hooks of others stay. The repository may be mirrored
or not. While it is mirrored, the next \`npm start\` registers its hook again.`,
  run: runRemove,
};

async function runRemove({ words, env, resources, within }: Given, output: Output): Promise<number> {
  if (words.includes(APP_WORD))
    throw new UsageError(
      "Upstream lets nobody remove an App's webhook by its API: switch it off on the App's page, under Webhook",
    );
  const names = readNames(words);
  if (names.length === 0) throw new UsageError("tain hooks remove needs the names of repositories: owner/name");
  const opened = await openInstance(env, resources, within);
  const { ctx } = opened;
  const address = await needAddress(opened);
  const removed: { repository: string; hookIds: number[]; problem: string | null }[] = [];
  for (const repository of await findHookNames(ctx, names)) {
    const asked = await orRefusal(async () => {
      const ours = (await listRepositoryHooks(ctx.upstream, await findHooked(ctx, repository))).filter(
        ({ url }) => url === address,
      );
      const [match] = await findMatches(ctx, repository);
      if (match) await forgetSubscription(ctx, match.id);
      for (const hook of ours) await deleteRepositoryHook(ctx.upstream, hook);
      return ours.map(({ id }) => id);
    });
    removed.push(
      "refusal" in asked
        ? { repository, hookIds: [], problem: asked.refusal }
        : { repository, hookIds: asked.found, problem: null },
    );
  }
  output.document({ address, removed });
  for (const { repository, hookIds, problem } of removed)
    output.line(
      `${repository}: ${problem ?? (hookIds.length === 0 ? `there was no hook that sends to ${address}` : `hook ${hookIds.join(", ")} is deleted`)}`,
    );
  return removed.every(({ problem }) => problem === null) ? 0 : 1;
}
