import { type Action, CommandError, type Given, UsageError } from "../terminal/command.ts";
import { openInstance } from "../terminal/open-instance.ts";
import type { Output } from "../terminal/output.ts";
import { readPatterns } from "../terminal/patterns.ts";
import { APP_WORD } from "./hook-names.ts";
import { ownSecret } from "./own-secret.ts";
import { NO_SECRET } from "./repository-hooks.ts";

export const secret: Action = {
  name: "hooks secret",
  summary: "print the secret for a hook that somebody makes by hand",
  takes: "app|owner/name|'owner/*'",
  about: `
Each repository's hooks have a secret of their own, made of the first WEBHOOK_SECRET: who knows it
can sign for that repository and no other. \`owner/*\` is the secret of an organisation's hook,
\`app\` that of the GitHub App's. The repository need not be mirrored yet.`,
  run: runSecret,
};

async function runSecret({ words, env, resources, within }: Given, output: Output): Promise<number> {
  const [word, ...others] = words;
  if (word === undefined || others.length > 0)
    throw new UsageError("tain hooks secret needs to know whose: app, owner/name, or owner/* in quotes");
  const [name = word] = word === APP_WORD ? [word] : readPatterns("hooks secret", [word]);
  const { ctx, hasWebhookSecret } = await openInstance(env, resources, within);
  if (!hasWebhookSecret) throw new CommandError(NO_SECRET);
  const made = await ownSecret(ctx, name);
  output.document({ target: name, secret: made });
  output.line(made);
  return 0;
}
