import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { apiUrl, httpUrl, port } from "../../config/values.ts";
import { rootReasonOf } from "../../failure.ts";
import { convertManifest, type NewApp } from "../../upstream/credentials/app-manifest.ts";
import { pagesOf } from "../../upstream/protocol/address.ts";
import { readSettingsFile, withSettings, writePrivately } from "../init/settings-file.ts";
import { type Action, CommandError, type Given, UsageError } from "../terminal/command.ts";
import { leavingSignal } from "../terminal/leaving.ts";
import type { Output } from "../terminal/output.ts";
import { START, typed } from "../terminal/typed.ts";
import { CallbackServer } from "./callback.ts";
import { manifestOf } from "./manifest.ts";

const DEFAULT_UPSTREAM = "https://api.github.com";
/** Upstream keeps a code for an hour. */
const CODE_LASTS_MS = 3_600_000;

export const create: Action = {
  name: "app create",
  summary: "make an App with the right permissions, events and webhook, by one click on a page",
  about: `
Prints the address of a page on this machine, whose one button leads to upstream's own page. When you
have confirmed there, the App exists: its key and secret are written to files that only you can read
(TAIN_HOME), and APP_ID, APP_PRIVATE_KEY_FILE and WEBHOOK_SECRET_FILE to .env. What is set there
already is never replaced. The browser has to run on this machine; from elsewhere forward the port.

UPSTREAM_URL says where (default ${DEFAULT_UPSTREAM}), and PUBLIC_URL where the App's webhook sends
to. Without PUBLIC_URL the App has no webhook, and changes are found by catch-up.`,
  flags: { write: "let the App write issues and pull requests, for callers that write through Tain" },
  values: {
    owner: { takes: "ORGANIZATION", about: "who shall own the App (default: you)" },
    name: { takes: "NAME", about: "the App's name, which nobody else's may have (default: tain-OWNER)" },
    port: { takes: "PORT", about: "the port of the page on this machine (default: any free one)" },
    file: { takes: "FILE", about: "the settings to complete (default: .env)" },
  },
  run: runCreate,
};

async function runCreate({ env, flags, values, resources }: Given, output: Output): Promise<number> {
  const file = resolve(values.get("file") ?? ".env");
  const settings = (await readSettingsFile(file)) ?? "";
  if (env.APP_ID || /^\s*APP_ID=\S/m.test(settings))
    throw new CommandError(
      `There is an App already (APP_ID): take APP_ID and APP_PRIVATE_KEY_FILE out of ${file} and the environment first`,
    );
  const upstreamUrl = checkedSetting("UPSTREAM_URL", apiUrl, env.UPSTREAM_URL?.trim() || DEFAULT_UPSTREAM);
  const publicUrl = env.PUBLIC_URL?.trim() ? checkedSetting("PUBLIC_URL", httpUrl, env.PUBLIC_URL.trim()) : null;
  const owner = values.get("owner") ?? null;
  const home = resolve(env.TAIN_HOME?.trim() || ".tain");
  // Before the App is made: if its key could not be stored, the key would be lost.
  await makeHome(home);

  // Ctrl-C has to work from the moment at which the page's address is shown.
  const leaving = leavingSignal(resources, undefined);
  await using server = await openServer(values.get("port"));
  const manifest = manifestOf({
    name: values.get("name") ?? (owner === null ? "tain-mirror" : `tain-${owner}`),
    publicUrl,
    homepage: publicUrl ?? pagesOf(upstreamUrl),
    redirectUrl: server.redirectUrl,
    mayWrite: flags.has("write"),
  });
  output.line(`Open this page in a browser on this machine, and press its button:\n\n  ${server.url}/\n`);
  if (publicUrl === null) output.line("PUBLIC_URL is not set: the App will have no webhook.\n");
  output.document({ event: "page", url: `${server.url}/` });
  const code = await awaitCode(leaving, (signal) => server.code(pagesOf(upstreamUrl), owner, manifest, signal));
  const made = await convertManifest(upstreamUrl, code);
  const keyFile = await keepSecrets(made, { env, home, file, settings, upstreamUrl });
  tellMade(output, made, { keyFile, file, hasWebhook: publicUrl !== null });
  return 0;
}

/** The code that upstream's page leads back with, once a person has confirmed there. */
async function awaitCode(leaving: AbortSignal, ask: (signal: AbortSignal) => Promise<string>): Promise<string> {
  const signal = AbortSignal.any([leaving, AbortSignal.timeout(CODE_LASTS_MS)]);
  try {
    return await ask(signal);
  } catch (error) {
    if (leaving.aborted) throw new CommandError("Interrupted: no App was made that we know of");
    if (signal.aborted) throw new CommandError("Nobody came back from upstream's page within an hour");
    throw error;
  }
}

/**
 * Writes the App's key and secret to files, and the files' paths into the settings. Returns the path of the key's file.
 */
async function keepSecrets(
  made: NewApp,
  to: { env: Given["env"]; home: string; file: string; settings: string; upstreamUrl: string },
): Promise<string> {
  const { env, home, file, settings, upstreamUrl } = to;
  const keyFile = resolve(home, `app-${made.id}.private-key.pem`);
  await writePrivately(keyFile, made.privateKey);
  const secretFile = resolve(home, `app-${made.id}.webhook-secret`);
  const keepsSecret =
    made.webhookSecret !== null && !env.WEBHOOK_SECRET && !/^\s*WEBHOOK_SECRET(_FILE)?=\S/m.test(settings);
  if (keepsSecret) await writePrivately(secretFile, `${made.webhookSecret}\n`);
  const completed = withSettings(settings, {
    ...(env.UPSTREAM_URL ? {} : { UPSTREAM_URL: upstreamUrl }),
    APP_ID: String(made.id),
    APP_PRIVATE_KEY_FILE: keyFile,
    ...(keepsSecret && { WEBHOOK_SECRET_FILE: secretFile }),
  });
  await writePrivately(file, completed);
  return keyFile;
}

function tellMade(
  output: Output,
  { id, slug, owner, htmlUrl }: NewApp,
  { keyFile, file, hasWebhook }: { keyFile: string; file: string; hasWebhook: boolean },
): void {
  const installUrl = `${htmlUrl}/installations/new`;
  output.document({ event: "made", id, slug, owner, installUrl, keyFile, file });
  output.line(`The App ${slug} is made, and belongs to ${owner}. Its key is in ${keyFile}, its id in ${file}.`);
  output.line("\nNext:");
  output.line(`  1. Install it on the accounts to mirror: ${installUrl}`);
  output.line(`  2. ${START}`);
  if (hasWebhook)
    output.line(
      `  3. ${typed("hooks register app")}  (gives its webhook a secret of its own, and proves that it arrives)`,
    );
}

async function makeHome(home: string): Promise<void> {
  try {
    await mkdir(home, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new CommandError(`${home} cannot be made (${rootReasonOf(error)}): set TAIN_HOME to a directory that can`, {
      cause: error,
    });
  }
}

async function openServer(text: string | undefined): Promise<CallbackServer> {
  try {
    return await CallbackServer.open(text === undefined ? 0 : port(text));
  } catch (error) {
    throw new UsageError(`--port ${text}: ${rootReasonOf(error)}`);
  }
}

function checkedSetting(name: string, read: (text: string) => string, text: string): string {
  try {
    return read(text);
  } catch (error) {
    throw new CommandError(`${name} ${rootReasonOf(error)}`);
  }
}
