import { type HookHolder, hookSecret } from "../../config/hook-secrets.ts";
import type { Context } from "../../context.ts";
import { readApp } from "../../upstream/hooks/app-hook.ts";
import { findId, type HookedRepository } from "../../upstream/hooks/hooks.ts";
import { CommandError } from "../terminal/command.ts";
import { findMatches } from "../terminal/patterns.ts";
import { APP_WORD } from "./hook-names.ts";

type SecretContext = Pick<Context, "config" | "db" | "upstream">;

/**
 * The secret for hooks of one repository, mirrored or not; of `app`; of a whole organisation by `owner/*`.
 * @param webhookSecret the value of WEBHOOK_SECRET that the secret is derived from; default: the first one
 * @throws UpstreamRefusedError when upstream shows none of that name; CommandError when there is no App
 */
export async function ownSecret(
  ctx: SecretContext,
  word: string,
  webhookSecret = ctx.config.webhookSecrets[0] ?? "",
): Promise<string> {
  return hookSecret(webhookSecret, await findHolder(ctx, word));
}

/** The repository of this name, mirrored or not. @throws UpstreamRefusedError when upstream shows none of that name */
export async function findHooked(ctx: Pick<Context, "db" | "upstream">, fullName: string): Promise<HookedRepository> {
  const [match] = await findMatches(ctx, fullName.toLowerCase());
  return { id: match?.id ?? (await findId(ctx.upstream, `/repos/${fullName}`)), fullName };
}

async function findHolder(ctx: SecretContext, word: string): Promise<HookHolder> {
  if (word === APP_WORD) {
    if (ctx.config.appId === null)
      throw new CommandError("There is no App: set APP_ID and APP_PRIVATE_KEY, or name a repository");
    return { type: "integration", id: (await readApp(ctx.upstream)).id };
  }
  const [owner = "", name = ""] = word.split("/");
  if (name === "*") return { type: "organization", id: await findId(ctx.upstream, `/users/${owner}`) };
  return { type: "repository", id: (await findHooked(ctx, word)).id };
}
