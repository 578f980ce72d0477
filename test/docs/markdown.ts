import { existsSync, globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const projectRoot = fileURLToPath(new URL("../..", import.meta.url));

/** Every page that is written by hand, by its path from the root. */
export const pages = globSync(["*.md", "docs/**/*.md"], { cwd: projectRoot })
  .filter((path) => path !== "docs/configuration.md") // Generated, and tested with the settings.
  .sort();

/** One fenced block of a page. */
export interface Block {
  /** What stands behind the fence, e.g. `sh`. */
  language: string;
  text: string;
  /** The nearest heading above it. */
  heading: string;
  line: number;
}

/** A page of the project by its path from the root. */
export function readPage(path: string): string {
  return readFileSync(`${projectRoot}${path}`, "utf8");
}

/** Every fenced block of a page, in order. @throws Error for a fence that is never closed */
export function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  let heading = "";
  let open: Block | null = null;
  for (const [at, line] of page.split("\n").entries()) {
    const fence = /^```(.*)$/.exec(line);
    if (fence && open) {
      blocks.push(open);
      open = null;
    } else if (fence) open = { language: (fence[1] ?? "").trim(), text: "", heading, line: at + 1 };
    else if (open) open.text += `${line}\n`;
    else heading = /^#+ (.*)$/.exec(line)?.[1] ?? heading;
  }
  if (open) throw new Error(`The block that begins in line ${open.line} has no end`);
  return blocks;
}

/** The page without its fenced blocks and code spans. */
export function proseOf(page: string): string {
  return page.replace(/^```[\s\S]*?^```$/gm, "").replace(/`[^`\n]*`/g, "");
}

/** Everything that the page sets as code inside a sentence. */
export function codeSpansOf(page: string): string[] {
  const prose = page.replace(/^```[\s\S]*?^```$/gm, "");
  return [...prose.matchAll(/`([^`\n]+)`/g)].map(([, span = ""]) => span);
}

/** Whether a file of tests has one with this title; "…" stands for what the title says more. */
export function hasTest(file: string, title: string): boolean {
  const path = `${projectRoot}${file}`;
  if (!existsSync(path)) return false;
  const parts = title.split(/ ?… ?/).map((part) => RegExp.escape(part));
  // Also what `test.each(…)(` and `test.skipIf(…)(` name.
  return new RegExp(`(\\b(test|check)|\\))\\(\\s*(["\`])${parts.join(".*")}\\3`).test(readFileSync(path, "utf8"));
}
