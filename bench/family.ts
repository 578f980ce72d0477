import { readdir, readFile } from "node:fs/promises";
import { basename } from "node:path";

const MIB = 2 ** 20;

/** Megabytes, as the kernel shares them out among processes that use the same pages (PSS), by kind of process. */
export type Memory = Record<string, number>;

/** The process and those below it, each by what it is. Linux only. */
export async function familyOf(root: number): Promise<Map<number, string>> {
  const all = new Map<number, { parent: number; kind: string }>();
  for (const entry of await readdir("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    // It may end meanwhile.
    const [stat, line] = await Promise.all(
      ["stat", "cmdline"].map((file) => readFile(`/proc/${entry}/${file}`, "utf8").catch(() => "")),
    );
    const [, parent = ""] = (stat ?? "").slice((stat ?? "").lastIndexOf(")") + 2).split(" ");
    all.set(Number(entry), { parent: Number(parent), kind: kindOf((line ?? "").split("\0")) });
  }
  const family = new Map<number, string>();
  for (const waiting = [root]; waiting.length > 0; ) {
    const pid = waiting.pop() ?? 0;
    family.set(pid, all.get(pid)?.kind ?? "");
    for (const [other, { parent }] of all) if (parent === pid) waiting.push(other);
  }
  return family;
}

/** The name of the program that Node.js runs, or of the store. */
function kindOf([command = "", ...args]: readonly string[]): string {
  if (command.startsWith("postgres") || basename(command) === "postgres") return "postgres";
  const script = args.find((one) => /\.(ts|mjs)$/.test(one) && !one.startsWith("--") && !one.startsWith("file:"));
  return script ? basename(script) : basename(command);
}

/** Rounded. `all` is the sum. */
export async function memoryOf(root: number): Promise<Memory> {
  const sums: Memory = { all: 0 };
  for (const [pid, kind] of await familyOf(root)) {
    const text = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "");
    const bytes = Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) * 1_024;
    sums[kind] = (sums[kind] ?? 0) + bytes;
    sums.all = (sums.all ?? 0) + bytes;
  }
  return Object.fromEntries(Object.entries(sums).map(([kind, bytes]) => [kind, Math.round(bytes / MIB)]));
}
