import { RETIRED_SETTINGS } from "../../src/config/retired.ts";
import { SETTINGS } from "../../src/config/settings.ts";

// Writes `.env.example` and `docs/configuration.md` from the settings. Run it after a setting has changed:
//   node scripts/generate/configuration.ts

interface Described {
  name: string;
  default?: string;
  required?: true;
  secret?: true;
  about: string;
}

const described: readonly Described[] = Object.values(SETTINGS);

/** The texts of the files that list the settings, by their path in the repository. Pure. */
export function configurationDocs(): Record<string, string> {
  return { ".env.example": envExample(), "docs/configuration.md": configurationPage() };
}

function envExample(): string {
  const lines = described.map((setting) => {
    const about = wrapped(setting.about.replaceAll("`", ""), 116).map((line) => `# ${line}`);
    // A setting with a default, or one that may be absent, is commented out, so that a copy of this file changes
    // nothing.
    const assignment = setting.required ? `${setting.name}=` : `# ${setting.name}=${setting.default ?? ""}`;
    return [...about, assignment].join("\n");
  });
  const head = [
    "# Every setting of Tain, see docs/configuration.md. Copy to .env, fill in what has no default, and start a process with",
    "# node --env-file=.env, e.g. node --env-file=.env src/web.ts",
  ].join("\n");
  return `${[head, ...lines].join("\n\n")}\n`;
}

function configurationPage(): string {
  const rows = described.map(
    ({ name, secret, about, ...setting }) =>
      `| \`${name}\` | ${defaultOf(setting)} | ${cell(about)}${secret ? " *Secret: never logged.*" : ""} |`,
  );
  return `# Configuration

Every setting is an environment variable, read once when a process starts. A value that cannot be right stops the process, and
the message names every such setting at once; it never turns into the default. A variable that is empty counts as not set.

A secret may stand in a file: \`WEBHOOK_SECRET_FILE\` names the file that holds \`WEBHOOK_SECRET\`, and so for every setting that is
marked as a secret. A line break at the file's end is no part of it. Secrets that you choose have at least 16 characters.

| variable | default | what it is for |
| --- | --- | --- |
${rows.join("\n")}

Settings of earlier versions that count no more are accepted, and the web process warns of them:
${Object.entries(RETIRED_SETTINGS)
  .map(([name, now]) => `\`${name}\` (${now})`)
  .join(", ")}.

Durations are written \`500ms\`, \`30s\`, \`5m\`, \`24h\`, \`7d\`, or as plain seconds. Lists are separated by commas.

This page and \`.env.example\` are written by \`node scripts/generate/configuration.ts\` from \`src/config/settings.ts\`.
`;
}

function defaultOf(setting: Pick<Described, "required" | "default">): string {
  if (setting.required) return "required";
  return setting.default ? `\`${setting.default}\`` : "none";
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

if (import.meta.main) {
  const { writeFile } = await import("node:fs/promises");
  for (const [path, text] of Object.entries(configurationDocs()))
    await writeFile(new URL(`../../${path}`, import.meta.url), text);
}
