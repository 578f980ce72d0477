import { randomUUID } from "node:crypto";
import { sign } from "@octokit/webhooks-methods";
import { fetch } from "undici";
import { type HookHolder, hookSecret } from "../../config/hook-secrets.ts";
import type { Context } from "../../context.ts";
import { resealSecrets } from "../../events/target.ts";
import { rootReasonOf } from "../../failure.ts";
import { placeSubscribed, wantedEvents } from "../../sync/following/hook-subscriptions.ts";
import { writeAppHook } from "../../upstream/hooks/app-hook.ts";
import { listRepositoryHooks } from "../../upstream/hooks/hooks.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import { type Action, CommandError, type Given } from "../terminal/command.ts";
import { newSecret } from "../terminal/instance.ts";
import { openInstance } from "../terminal/open-instance.ts";
import { type Output, styled } from "../terminal/output.ts";
import { type HookFinding, hookProblem } from "./diagnosis.ts";
import { APP_WORD, findHookNames, readHookNames } from "./hook-names.ts";
import { findHooked, ownSecret } from "./own-secret.ts";
import { proveAppHook, provePing } from "./proof.ts";
import type { Registered } from "./register.ts";
import { needAddress } from "./repository-hooks.ts";

export const rotate: Action = {
  name: "hooks rotate",
  summary: "change the secret of our hooks without losing a delivery",
  takes: "[app|owner/name…]",
  about: `
WEBHOOK_SECRET may hold several secrets: receivers accept what is signed by any of them, and hooks
are given secrets made of the first. Run it three times:

1. With one secret it proposes a new one. Put it before the old one, and restart.
2. With both it makes sure that the receivers accept the new one, then gives it to our hooks, one
   after the other. Each is pinged, and given the old secret again should the ping be refused.
3. It then says to take the old one out of WEBHOOK_SECRET.`,
  run: runRotate,
};

const ROTATION_PROBE_MS = 10_000;

async function runRotate({ words, env, resources, within }: Given, output: Output): Promise<number> {
  const names = readHookNames(words);
  const opened = await openInstance(env, resources, within);
  const { ctx } = opened;
  const address = await needAddress(opened);
  const [fresh = "", old] = ctx.config.webhookSecrets;
  if (old === undefined) {
    const proposed = newSecret();
    output.document({ step: "propose", secret: proposed, rotated: [] });
    output.line(`WEBHOOK_SECRET holds one secret. Put this one before it, with a comma between them, wherever Tain runs:

  WEBHOOK_SECRET=${proposed},<the one that it holds now>

Restart, and run \`tain hooks rotate\` again with the same setting. Until then nothing is changed.`);
    return 0;
  }
  await seeAccepted(address, fresh);

  const rotated: Registered[] = [];
  for (const name of await findHookNames(ctx, names)) {
    const one = await rotateOne(ctx, name, { address, fresh, old });
    rotated.push(one);
    output.line(
      one.finding === null
        ? `${name}: has the new secret, and its ${styled("green", "ping arrived")}`
        : `${name}: ${styled(one.finding.level === "problem" ? "red" : "yellow", one.finding.says)}\n    ${one.finding.todo}`,
    );
    // Stops at the first failed ping: the others would most likely fail too, and each further hook would lose
    // deliveries.
    if (one.ping === "failed") break;
  }
  const isDone = rotated.every(({ finding }) => finding === null || finding.level === "warning");
  const isAll = names.length === 0;
  // Without ENCRYPTION_KEY, the old secret also encrypted those of targets. They must not go with it.
  if (isDone && isAll) await resealSecrets(ctx);
  output.document({ step: !isDone ? "failed" : isAll ? "finish" : "continue", rotated });
  output.line(
    isDone
      ? isAll
        ? "\nAll hooks sign with the new secret. Take the old one out of WEBHOOK_SECRET in an hour, when nothing that was signed with it is under way any more, and restart."
        : "\nKeep both secrets in WEBHOOK_SECRET: the other hooks may sign with the old one, until `tain hooks rotate` without names gives all of them the new one."
      : "\nKeep both secrets in WEBHOOK_SECRET, mend what is said above, and run it again: hooks that have the new secret already keep it.",
  );
  return isDone ? 0 : 1;
}

/**
 * Sends the receivers a ping of our own, signed with the new secret. A hook with a secret that the receivers do not
 * know would lose deliveries.
 * @throws CommandError when they do not accept it
 */
async function seeAccepted(address: string, secret: string): Promise<void> {
  const holder: HookHolder = { type: "repository", id: 0 };
  const body = JSON.stringify({ zen: "The first ping with a new secret is our own.", hook_id: 0 });
  let status: number;
  try {
    const answer = await fetch(address, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": "tain",
        "x-github-event": "ping",
        "x-github-delivery": randomUUID(),
        "x-github-hook-installation-target-type": holder.type,
        "x-github-hook-installation-target-id": String(holder.id),
        "x-hub-signature-256": await sign(hookSecret(secret, holder), body),
      },
      body,
      signal: AbortSignal.timeout(ROTATION_PROBE_MS),
    });
    status = answer.status;
    await answer.arrayBuffer();
  } catch (error) {
    throw new CommandError(
      `${address} cannot be reached from here (${rootReasonOf(error)}), so nobody knows whether the receivers accept the new secret: run it where it can be reached. No hook was changed`,
      { cause: error },
    );
  }
  if (status === 401)
    throw new CommandError(
      `The receivers at ${address} do not accept the new secret yet: restart them with this WEBHOOK_SECRET first. No hook was changed`,
    );
  if (status !== 200 && status !== 202)
    throw new CommandError(
      `${address} answers ${status} to a ping with the new secret: \`tain doctor\` may say why. No hook was changed`,
    );
}

async function rotateOne(
  ctx: Context,
  name: string,
  { address, fresh, old }: { address: string; fresh: string; old: string },
): Promise<Registered> {
  let hookId: number | null = null;
  const give = async (webhookSecret: string) => {
    const secret = await ownSecret(ctx, name, webhookSecret);
    if (name === APP_WORD) {
      await writeAppHook(ctx.upstream, { url: address, secret });
      return () => proveAppHook(ctx, address);
    }
    const events = await wantedEvents(ctx, name);
    const hook = await placeSubscribed(ctx, { repository: await findHooked(ctx, name), url: address, secret, events });
    hookId = hook.id;
    return () => provePing(ctx, hook, { repository: name, address });
  };
  try {
    if (
      name !== APP_WORD &&
      !(await listRepositoryHooks(ctx.upstream, await findHooked(ctx, name))).some(({ url }) => url === address)
    )
      return { repository: name, hookId, ping: null, finding: hookless(name, address) };
    const prove = await give(fresh);
    const proof = await prove();
    if (proof.ping === "failed") await give(old);
    return { repository: name, hookId, ...proof };
  } catch (error) {
    if (!(error instanceof UpstreamRefusedError)) throw error;
    const todo = "See that a credential may manage this hook; `tain hooks check` says more";
    return { repository: name, hookId, ping: null, finding: hookProblem("refused", error.message, todo) };
  }
}

function hookless(name: string, address: string): HookFinding {
  return {
    level: "warning",
    kind: "missing",
    says: `no hook of the repository sends to ${address}, so there is no secret to change`,
    todo: `\`tain hooks register ${name}\` makes one`,
  };
}
