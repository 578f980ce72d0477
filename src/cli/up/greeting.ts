import type { RepositoryStatus } from "../../health/status.ts";
import type { Instance } from "../terminal/instance.ts";
import { counted, grouped, styled } from "../terminal/output.ts";
import { typed } from "../terminal/typed.ts";

export interface Greeting {
  instance: Instance;
  /** The path of the instance's file. */
  file: string;
  hasSimulator: boolean;
  /** Whether upstream's webhooks reach us. */
  isReached: boolean;
}

/**
 * The greeting, before anything is copied: the addresses, and what to try. Output may be collected, so the greeting
 * holds no secret, only the path of the file with the token. Pure but for colours.
 */
export function greeting({ instance, file, hasSimulator, isReached }: Greeting): string {
  const { apiUrl, webhookUrl, upstreamUrl } = instance;
  const places = [
    ["REST", `${apiUrl}  (also below /api/v3)`],
    ["GraphQL", `${apiUrl}/graphql`],
    ["Webhooks", `${webhookUrl}`],
    ["Page", `${apiUrl}/-/  (sign in with the operatorToken in the file below)`],
    ["Status", `${apiUrl}/-/status  (for the same token)`],
    ["Upstream", hasSimulator ? `${upstreamUrl}  (simulated, about one change a second)` : upstreamUrl],
    ["Token", "in the file below, as `token`"],
    ["All this", file],
  ].map(([name = "", value = ""]) => `  ${styled("bold", name.padEnd(9))} ${value}`);
  const lines = ["", ...places, "", ...examples(instance, file, hasSimulator), ""];
  if (!isReached)
    lines.push(
      "PUBLIC_URL is not set, so upstream sends no webhooks: changes are found by catch-up (CATCH_UP_INTERVAL).",
      "",
    );
  return lines.join("\n");
}

/** What the mirror holds, once the first copies have ended or wait. Pure but for colours. */
export function copied(repositories: readonly RepositoryStatus[]): string {
  return [...copyLines(repositories), `\`${typed("status")}\` shows how things stand; Ctrl-C stops everything.`].join(
    "\n",
  );
}

function copyLines(repositories: readonly RepositoryStatus[]): string[] {
  if (repositories.length === 0)
    return [
      `Tain is up, and mirrors nothing yet: name something in REPOSITORIES, or with \`${typed("add owner/name")}\`.`,
    ];
  const live = repositories.filter(({ state }) => state === "live");
  const resources = repositories.reduce((total, { progress }) => total + (progress?.resources ?? 0), 0);
  const of = live.length === repositories.length ? "" : ` of ${grouped(repositories.length)}`;
  const lines = [
    `${styled("green", "Tain is up")}: ${grouped(live.length)}${of} ${repositories.length === 1 ? "repository" : "repositories"} live, ${counted(resources, "resource")} copied.`,
  ];
  for (const { owner, name, state, problem } of repositories) {
    if (problem !== null) lines.push(`  ${owner}/${name} ${state === "backfilling" ? "waits" : state}: ${problem}`);
  }
  return lines;
}

/**
 * Three requests to try, and `gh`. With a real upstream, none of them writes. `gh` speaks plain HTTP to this one name
 * alone, which leads here by the proxy.
 */
function examples({ apiUrl, repositories: [first] }: Instance, file: string, hasSimulator: boolean): string[] {
  const curl = 'curl -H "Authorization: Bearer $TOKEN"';
  const repository = first ? `${apiUrl}/repos/${first.owner}/${first.name}` : `${apiUrl}/user/repos`;
  const query =
    "{ viewer { login repositories(first: 3, orderBy: {field: UPDATED_AT, direction: DESC}) { nodes { nameWithOwner } } } }";
  const gh = `http_proxy=${apiUrl} GH_HOST=github.localhost GH_TOKEN=$TOKEN gh`;
  return [
    "Try:",
    `  TOKEN=$(node -p ${shellWord(`require(${JSON.stringify(file)}).token`)})`,
    first ? `  ${curl} "${repository}/issues?state=open&per_page=3"` : `  ${curl} "${apiUrl}/user"`,
    first && hasSimulator
      ? `  ${curl} ${repository}/issues -d '{"title":"Hello from the mirror"}'`
      : `  ${curl} "${first ? `${repository}/pulls` : repository}"`,
    `  ${curl} ${apiUrl}/graphql -d '${JSON.stringify({ query })}'`,
    `  ${gh} ${first ? `issue list -R ${first.owner}/${first.name}` : "repo list"}`,
  ];
}

/** Quotes a text as one word for a shell. */
function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
