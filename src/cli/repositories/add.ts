import { and, eq } from "drizzle-orm";
import type { MirrorPart } from "../../config/parts.ts";
import { exceptionIn, parts } from "../../config/values.ts";
import type { Context } from "../../context.ts";
import { reasonOf } from "../../failure.ts";
import { problems } from "../../schema.ts";
import { selectParts } from "../../sync/following/parts.ts";
import { addSelections, resolveSelections } from "../../sync/following/selection.ts";
import { tryAgain } from "../../sync/problems/problems.ts";
import { reachableAddress, registerHook } from "../hooks/repository-hooks.ts";
import { type Command, CommandError, type Given, UsageError } from "../terminal/command.ts";
import { openInstance } from "../terminal/open-instance.ts";
import { type Output, styled, tableLines } from "../terminal/output.ts";
import { findMatches, readTracked } from "../terminal/patterns.ts";

export const add: Command = {
  name: "add",
  takes: "PATTERN…",
  about: `
Adds what to mirror: \`owner/name\`, or \`'owner/*'\` for all repositories of an owner, also
those to come, and \`'!owner/name'\` for one that is excepted from those. Each is looked up at upstream at once, also when it failed just now, and its first
copy is queued; its
webhook is registered where upstream can reach us (PUBLIC_URL). What cannot be found is
kept as a selection and tried again; the exit code is 1 then. \`tain backfill\` follows the copies.`,
  values: {
    mirror: {
      takes: "PARTS",
      about: "what to mirror beside issues and pull requests, e.g. checks; none takes it back",
    },
  },
  run: runAdd,
};

interface Added {
  pattern: string;
  repository: string | null;
  id: number | null;
  state: string | null;
  webhook: "registered" | "refused" | "none";
  problem: string | null;
}

async function runAdd({ words, values, env, resources, within }: Given, output: Output): Promise<number> {
  const patterns = readTracked("add", words);
  const selectedParts = readParts(values.get("mirror"));
  const opened = await openInstance(env, resources, within);
  const { ctx } = opened;
  refuseContrary(ctx.config.repositories, patterns);
  await addSelections(ctx, patterns);
  if (selectedParts) for (const pattern of patterns) await selectParts(ctx, pattern, selectedParts);
  await tryAgain(ctx.db, { task: "select", keys: patterns });
  for (const pattern of patterns)
    await tryAgain(ctx.db, { repositoryIds: (await findMatches(ctx, pattern)).map(({ id }) => id) });
  await resolveSelections(ctx);
  const webhookUrl = await reachableAddress(opened);

  const added: Added[] = [];
  const excepted = patterns.flatMap((pattern) => exceptionIn(pattern) ?? []);
  const covered = patterns.filter((pattern) => exceptionIn(pattern) === null);
  for (const pattern of covered) added.push(...(await reportOn(ctx, pattern, webhookUrl)));
  output.document({ added, excepted });
  for (const name of excepted) output.line(`${name}: is not mirrored, whatever covers it; what was copied is kept`);
  if (added.length === 0) return 0;
  const rows = added.map(({ repository, pattern, id, state, webhook, problem }) => [
    repository ?? pattern,
    id === null ? "-" : String(id),
    state ?? styled("red", "not found"),
    webhook,
    problem ?? "",
  ]);
  output.line(tableLines(["REPOSITORY", "ID", "STATE", "WEBHOOK", "PROBLEM"], rows));
  return added.every(({ repository }) => repository !== null) ? 0 : 1;
}

/** REPOSITORIES is read every minute, so what it says in the other direction would win. @throws CommandError */
function refuseContrary(configured: readonly string[], patterns: readonly string[]): void {
  for (const pattern of patterns) {
    const contrary = exceptionIn(pattern) ?? `!${pattern}`;
    if (configured.includes(contrary))
      throw new CommandError(`REPOSITORIES has ${contrary}: take it out there first. Nothing was added`);
  }
}

/** Null: the option is absent. @throws UsageError */
function readParts(text: string | undefined): MirrorPart[] | null {
  if (text === undefined) return null;
  try {
    return text === "none" ? [] : parts(text);
  } catch (error) {
    throw new UsageError(`--mirror ${reasonOf(error)}`);
  }
}

async function reportOn(ctx: Context, pattern: string, webhookUrl: string | null): Promise<Added[]> {
  const [failure] = await ctx.db
    .select({ problem: problems.problem })
    .from(problems)
    .where(and(eq(problems.task, "select"), eq(problems.key, pattern)));
  const matches = await findMatches(ctx, pattern);
  if (matches.length === 0) {
    const problem =
      failure?.problem ??
      (pattern.endsWith("/*") ? "upstream shows no repositories of this owner" : "upstream says nothing of it");
    return [{ pattern, repository: null, id: null, state: null, webhook: "none", problem }];
  }
  const reports: Added[] = [];
  for (const { id, fullName, state, problem } of matches) {
    const [owner = "", name = ""] = fullName.split("/");
    const refusal = webhookUrl === null ? null : await registerHook(ctx, { id, owner, name }, webhookUrl);
    const webhook = webhookUrl === null ? "none" : refusal === null ? "registered" : "refused";
    reports.push({
      pattern,
      repository: fullName,
      id,
      state,
      webhook,
      problem: problem ?? refusal ?? failure?.problem ?? null,
    });
  }
  return reports;
}
