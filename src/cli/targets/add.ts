import { readFile } from "node:fs/promises";
import { TARGET_FORMATS, type TargetFormat } from "../../../db/schema/states.ts";
import { addressFault } from "../../events/address-guard.ts";
import { wantsChanged } from "../../events/log.ts";
import { isChat } from "../../events/request.ts";
import { createTarget, type Scope } from "../../events/target.ts";
import { rootReasonOf } from "../../failure.ts";
import { findId } from "../../upstream/hooks/hooks.ts";
import { type Action, CommandError, type Given, listOf, UsageError } from "../terminal/command.ts";
import { newSecret } from "../terminal/instance.ts";
import { type OpenedInstance, openInstance } from "../terminal/open-instance.ts";
import type { Output } from "../terminal/output.ts";
import { findMatches, readPatterns } from "../terminal/patterns.ts";

export const add: Action = {
  name: "targets add",
  summary: "send events to an address",
  takes: "URL",
  flags: {
    form: "send a form with the field payload, as old consumers want it, and not JSON",
    "rewrite-urls": "let addresses of upstream's API in what is sent lead to the mirror (PUBLIC_URL)",
  },
  values: {
    for: { takes: "NAME", about: "only those of owner/name, or of 'owner/*' (default: of everything mirrored)" },
    events: { takes: "LIST", about: "only these, comma separated: issues,pull_request (default: all)" },
    actions: { takes: "LIST", about: "only with one of these actions: opened,closed (default: with any)" },
    labels: { takes: "LIST", about: "only about issues and pull requests with one of these labels" },
    format: { takes: "FORMAT", about: "slack, teams, discord or cloudevents (default: as upstream sent it)" },
    installation: {
      takes: "ID",
      about: "name this installation of an App in what is sent, for the App whose URL it is",
    },
    "secret-file": { takes: "FILE", about: "the secret that requests are signed with (default: a new one is made)" },
  },
  about: `
Sends every event to the address from now on, as upstream sent it, once the mirror shows what it
tells. Prints the secret that requests are signed with; it is shown this once. To an incoming webhook of
Slack, Teams (Workflows) or Discord it sends messages for people, unsigned.`,
  run: runAdd,
};

async function runAdd({ words, flags, values, env, resources, within }: Given, output: Output): Promise<number> {
  const [url, ...others] = words;
  if (url === undefined || others.length > 0)
    throw new UsageError("tain targets add needs to know where to send: one address, such as https://ci.example/hook");
  const events = (values.get("events") ?? "*").split(",").map((each) => each.trim());
  const odd = events.find((each) => !/^(\*|[a-z_]+)$/.test(each));
  if (odd !== undefined)
    throw new UsageError(`--events names ${JSON.stringify(odd)}, which is no event: write such as issues,pull_request`);
  const format = formatIn(values, flags);
  const [actions, labels] = [listIn(values, "actions"), listIn(values, "labels")];
  const given = values.get("for");
  const installationId = installationIn(values, given);
  const [pattern] = given === undefined ? [] : readPatterns("targets add --for", [given]);
  const file = values.get("secret-file");
  const secret = isChat(format) ? null : file === undefined ? newSecret() : await readSecret(file);
  const opened = await openInstance(env, resources, within);
  const { ctx } = opened;
  if (secret !== null) requireSealing(opened);
  const fault = addressFault(ctx.config.targetsAllowed, url);
  if (fault === "malformed")
    throw new UsageError(`${url} is no address of a web server, such as https://ci.example/hook`);
  if (fault === "unreachable")
    throw new CommandError(
      `${url} is not on the public Internet, or on another port than 80, 443, 8080 and 8443: name its host in TARGETS_ALLOWED, for this command and for the workers`,
    );
  const target = await createTarget(ctx, {
    scope: await targetScope(opened, pattern),
    madeBy: "operator",
    ...{ url, contentType: flags.has("form") ? "form" : "json", insecureSsl: false, secret, events, active: true },
    rewriteTo: flags.has("rewrite-urls") ? apiOf(opened) : null,
    installationId,
    ...{ format, actions, labels },
  });
  await wantsChanged(ctx);
  const made = file === undefined ? secret : null;
  output.document({ id: target.id, secret: made });
  // The secret is the only text on stdout, so that a script can read it.
  if (made !== null) output.line(made);
  output.note(`tain: target ${target.id} hears of ${pattern ?? "everything"} from now on`);
  return 0;
}

/** @throws UsageError */
function formatIn(values: Given["values"], flags: Given["flags"]): TargetFormat | null {
  const text = values.get("format");
  if (text === undefined) return null;
  const format = TARGET_FORMATS.find((each) => each === text);
  if (format === undefined) throw new UsageError(`--format takes ${listOf(TARGET_FORMATS, "or")}, and not ${text}`);
  const odd = ["form", ...(isChat(format) ? ["secret-file", "installation", "rewrite-urls"] : [])].find(
    (each) => flags.has(each) || values.has(each),
  );
  if (odd === undefined) return format;
  throw new UsageError(`--${odd} is for events as upstream sent them: leave out --format ${format}, or --${odd}`);
}

/** @throws UsageError */
function listIn(values: Given["values"], name: "actions" | "labels"): string[] | null {
  const list = values
    .get(name)
    ?.split(",")
    .map((each) => each.trim());
  if (list?.some((each) => each === ""))
    throw new UsageError(`--${name} takes names, comma separated, and not ${JSON.stringify(values.get(name))}`);
  return list ?? null;
}

/** @throws UsageError */
function installationIn(values: Given["values"], scope: string | undefined): number | null {
  const id = values.get("installation");
  if (id === undefined) return null;
  if (!/^[1-9]\d{0,14}$/.test(id)) throw new UsageError(`--installation needs an id, a number, and not ${id}`);
  if (scope === undefined)
    throw new UsageError("--installation needs --for 'owner/*' as well: each account has an installation of its own");
  return Number(id);
}

/** Requires the key of the other processes. A secret sealed with a made-up key could be opened by no worker. @throws CommandError */
function requireSealing({ hasWebhookSecret }: OpenedInstance): void {
  if (!hasWebhookSecret)
    throw new CommandError(
      "Secrets are kept encrypted by a key made of ENCRYPTION_KEY, or else WEBHOOK_SECRET: set both as the workers have them",
    );
}

/** @throws CommandError */
function apiOf({ ctx, instance }: OpenedInstance): string {
  const api = ctx.config.publicUrl ?? instance?.apiUrl;
  if (api) return api;
  throw new CommandError("--rewrite-urls needs the address by which targets reach the mirror: set PUBLIC_URL");
}

async function readSecret(file: string): Promise<string> {
  try {
    const text = (await readFile(file, "utf8")).trim();
    if (text !== "") return text;
  } catch (cause) {
    throw new CommandError(`${file} cannot be read: ${rootReasonOf(cause)}`, { cause });
  }
  throw new CommandError(`${file} is empty: write the secret into it`);
}

async function targetScope({ ctx }: OpenedInstance, pattern: string | undefined): Promise<Scope> {
  if (pattern === undefined) return { kind: "everything", id: 0 };
  const [owner = "", name = ""] = pattern.split("/");
  if (name === "*") return { kind: "organization", id: await findId(ctx.upstream, `/users/${owner}`) };
  const [match] = await findMatches(ctx, pattern);
  if (!match)
    throw new CommandError(`${pattern} is not mirrored, so there is nothing to send: \`tain add ${pattern}\` first`);
  return { kind: "repository", id: match.id };
}
