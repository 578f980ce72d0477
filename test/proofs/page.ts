import { type Bound, type Command, type Figure, isMet, type Proof } from "./proof.ts";
import { PASSED, type Result } from "./runs.ts";

const INTRODUCTION = `# Proofs

Some promises take too long to be held to at every change. Each is one command, and is run before a change that touches it
is called done:

\`\`\`sh
npm run proofs -- --list
npm run proofs floor kills
\`\`\`

Without a name all are run, which takes most of a day. An interrupted run goes on where it stopped. A proof that was met is not
run again on the same sources, unless \`--again\` asks for it. \`npm run proofs\` writes this page: what each proof runs, what it
measured last, with the bound in brackets, and on which commit.`;

const NOT_RUN = "Not run yet.";
/** A command of more words than the longest of the simulation's names things that the proof is about: see the sources. */
const MOST_WORDS = 12;

/** The page's text, with the new results. For other proofs it keeps what the earlier page says. Pure. */
export function pageOf(proofs: readonly Proof[], results: readonly Result[], earlier: string): string {
  const sections = proofs.map((proof) => {
    const result = results.find(({ name }) => name === proof.name);
    return [headOf(proof), aboutOf(proof), result ? outcomeOf(result) : (knownOutcome(proof, earlier) ?? NOT_RUN)];
  });
  return `${[INTRODUCTION, ...sections.flat()].join("\n\n")}\n`;
}

const headOf = ({ name }: Proof) => `## \`${name}\``;

function aboutOf({ proves, minutes, commands }: Proof): string {
  return `${proves} About ${minutes} minutes: \`${written(commands[0])}\`${more(commands.length - 1)}.`;
}

/** What the earlier page says that this proof has measured; null: nothing. */
function knownOutcome(proof: Proof, earlier: string): string | null {
  const section = earlier.split(/^(?=## )/m).find((one) => one.startsWith(`${headOf(proof)}\n`));
  // The first paragraph says what the proof is, as it was then.
  return section?.trim().split("\n\n").slice(2).join("\n\n") || null;
}

/** The figures of a result, in a line for each case. Pure. */
function outcomeOf({ version, date, seconds, attempts, figures, isMet: isAllMet }: Result): string {
  const tries = attempts > 1 ? `, after ${attempts} attempts` : "";
  const head = `**${isAllMet ? "Met" : "Not met"}** on ${version}, ${date.slice(0, 10)}, ${seconds.toLocaleString("en")} s${tries}`;
  // All runs passed, as the head says.
  const told = figures.filter((figure) => figure.what !== PASSED || !isMet(figure));
  const cases = [...Map.groupBy(told, ({ of }) => of)];
  const lines = cases.map(([of, own]) => `- ${of === undefined ? "" : `${of}: `}${own.map(inWords).join("; ")}`);
  return lines.length === 0 ? `${head}.` : `${head}:\n\n${lines.join("\n")}`;
}

function inWords(figure: Figure): string {
  const text = `${figure.what} ${shown(figure)}${figure.bound === null ? "" : ` (${wanted(figure.bound)})`}`;
  return isMet(figure) ? text : `**${text}**`;
}

export function shown({ measured }: Figure): string {
  return measured === null ? "nothing" : measured.toLocaleString("en", { maximumFractionDigits: 3 });
}

export function wanted(bound: Bound | null): string {
  if (bound === null) return "none";
  return "atMost" in bound ? `≤${bound.atMost.toLocaleString("en")}` : `≥${bound.atLeast.toLocaleString("en")}`;
}

/** The command as a person types it. */
function written(command: Command | undefined): string {
  if (!command) return "";
  const [verb, ...args] = command.args;
  const set = Object.entries(command.env ?? {}).map(([name, value]) => `${name}=${value} `);
  const words = args.map((word) => (word.includes(" ") ? `'${word}'` : word));
  const some = words.length > MOST_WORDS ? [...words.slice(0, 2), "…"] : words;
  return `${set.join("")}npm ${verb === "test" ? "test" : `run ${verb}`} -- ${some.join(" ")}`;
}

function more(count: number): string {
  return count > 0 ? ` and ${count} more` : "";
}
