import { type Bound, type Command, type Figure, isMet, type Proof } from "./proof.ts";
import type { Result } from "./runs.ts";

const INTRODUCTION = `# Proofs

Some promises take too long to be held to at every change. Each is one command, and is run before a change that touches it
is called done:

\`\`\`sh
npm run proofs -- --list
npm run proofs floor kills
\`\`\`

Without a name all are run, which takes most of a day. An interrupted run goes on where it stopped. A proof that was met is not
run again on the same sources, unless \`--again\` asks for it. \`npm run proofs\` writes this page: it shows what was measured last,
and on which version.`;

const HEAD = ["proof", "figure", "measured", "bound", "met", "version", "seconds"];

/** The page's text, with the new results. For other proofs it keeps what the earlier page says. Pure. */
export function pageOf(proofs: readonly Proof[], results: readonly Result[], earlier: string): string {
  const measured = proofs.flatMap((proof) => {
    const result = results.find(({ name }) => name === proof.name);
    if (result) return rowsOf(result);
    const known = earlier.split("\n").filter((row) => row.startsWith(`| \`${proof.name}\` | `) && isMeasured(row));
    return known.length > 0 ? known : [row([`\`${proof.name}\``, "not run yet", ...HEAD.slice(2).map(() => "")])];
  });
  const about = proofs.map(({ name, proves, minutes, commands }) =>
    row([`\`${name}\``, proves, `${minutes}`, `\`${written(commands[0])}\`${more(commands.length - 1)}`]),
  );
  return [
    INTRODUCTION,
    "",
    ...tableHead(HEAD),
    ...measured,
    "",
    "## What they prove",
    "",
    ...tableHead(["proof", "what holds", "minutes, about", "what is run"]),
    ...about,
    "",
  ].join("\n");
}

/** The rows of a result, one for each figure. Pure. */
function rowsOf({ name, version, date, seconds, attempts, figures }: Result): string[] {
  return figures.map((figure) =>
    row([
      `\`${name}\``,
      figure.what.replaceAll("|", "\\|"),
      shown(figure),
      wanted(figure.bound),
      verdictOn(figure, attempts),
      `${version}, ${date.slice(0, 10)}`,
      seconds.toLocaleString("en"),
    ]),
  );
}

export function shown({ measured }: Figure): string {
  return measured === null ? "nothing" : measured.toLocaleString("en", { maximumFractionDigits: 3 });
}

function verdictOn(figure: Figure, attempts: number): string {
  if (!isMet(figure)) return "**no**";
  if (figure.bound === null) return "";
  return `yes${attempts > 1 ? `, after ${attempts} attempts` : ""}`;
}

export function wanted(bound: Bound | null): string {
  if (bound === null) return "none";
  return "atMost" in bound ? `≤ ${bound.atMost.toLocaleString("en")}` : `≥ ${bound.atLeast.toLocaleString("en")}`;
}

/** Two tables have rows that begin with a proof's name. A measured row is one of the table of figures. */
function isMeasured(text: string): boolean {
  return text.split(" | ").length === HEAD.length && !text.includes("| not run yet |");
}

/** The command as a person types it. */
function written(command: Command | undefined): string {
  if (!command) return "";
  const [verb, ...args] = command.args;
  const set = Object.entries(command.env ?? {}).map(([name, value]) => `${name}=${value} `);
  const words = args.map((word) => (word.includes(" ") ? `'${word}'` : word));
  return `${set.join("")}npm ${verb === "test" ? "test" : `run ${verb}`} -- ${words.join(" ")}`;
}

function more(count: number): string {
  return count > 0 ? ` and ${count} more` : "";
}

function tableHead(cells: readonly string[]): string[] {
  return [row(cells), row(cells.map(() => "---"))];
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}
