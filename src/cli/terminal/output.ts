import { stripVTControlCharacters, styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

/** How often progress is printed if the output is no terminal, where each report adds a line. */
export const PLAIN_MS = 2_000;

/** Where a command writes. Results go to stdout, notes for a person to stderr. */
export interface Output {
  /** Print JSON only. */
  readonly json: boolean;
  /** Whether lines can be drawn over. */
  readonly isTerminal: boolean;
  /** The terminal's width, or 100. */
  readonly width: number;
  /** A line for a person, on stdout; nothing with --json. */
  line(text?: string): void;
  /** A line for a person, on stderr. */
  note(text: string): void;
  /** One JSON document on a line of its own; nothing without --json. */
  document(value: unknown): void;
  /** The same of one that is JSON already, on one line. */
  jsonText(text: string): void;
  /** Text that may hold control sequences, as it is; nothing with --json. */
  raw(text: string): void;
}

/** The streams of a command: those of the process, or others in a test. */
export interface OutputStreams {
  /** What a person types. Undefined: there is nobody to ask. */
  stdin?: NodeJS.ReadableStream & { isTTY?: boolean };
  stdout: { write(piece: string | Uint8Array): unknown; isTTY?: boolean; columns?: number };
  stderr: { write(text: string): unknown };
}

export function openOutput({ json }: { json: boolean }, { stdout, stderr }: OutputStreams): Output {
  const write = (text: string) => {
    stdout.write(text);
  };
  return {
    json,
    isTerminal: stdout.isTTY === true && !json,
    get width() {
      // Some terminals report 0 columns if they do not know their width.
      return stdout.columns || 100;
    },
    line: (text = "") => (json ? undefined : write(`${text}\n`)),
    note: (text) => {
      stderr.write(`${text}\n`);
    },
    document: (value) => (json ? write(`${JSON.stringify(value)}\n`) : undefined),
    jsonText: (text) => (json ? write(`${text}\n`) : undefined),
    raw: (text) => (json ? undefined : write(text)),
  };
}

/** Colours for stdout; plain where it is no terminal or NO_COLOR is set. */
export function styled(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

/** Aligned columns, two spaces apart, headings above. Pure but for the colours' dependence on stdout. */
export function tableLines(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [headings.map((heading) => styled("dim", heading)), ...rows];
  const widths = headings.map((_, at) => Math.max(...all.map((row) => shownLength(row[at] ?? ""))));
  return all
    .map((row) =>
      row
        .map((cell, at) => cell + " ".repeat((widths[at] ?? 0) - shownLength(cell)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** The length of a line without control sequences. Pure. */
export function shownLength(text: string): number {
  return stripVTControlCharacters(text).length;
}

/** Control sequences that others wrote must not reach a person's terminal. Line breaks stay. Pure. */
export function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
  return text.replaceAll(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, "\ufffd");
}

/** In seconds, the largest first. */
const UNITS = [
  { size: 86_400, name: "d" },
  { size: 3_600, name: "h" },
  { size: 60, name: "m" },
  { size: 1, name: "s" },
] as const;

/** `4s`, `3m 20s`, `2h 5m`, `3d 4h`. Pure. */
export function spanOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  const at = UNITS.findIndex(({ size }) => seconds >= size);
  const [unit, next] = UNITS.slice(Math.max(0, at));
  if (at === -1 || !unit) return "0s";
  const rest = next ? Math.floor((seconds % unit.size) / next.size) : 0;
  return `${Math.floor(seconds / unit.size)}${unit.name}${next && rest > 0 ? ` ${rest}${next.name}` : ""}`;
}

/** `2,412`. Pure. */
export function grouped(count: number): string {
  return String(Math.round(count)).replaceAll(/\B(?=(\d{3})+$)/g, ",");
}

/** `1 page`, `2 pages`. Pure. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}
