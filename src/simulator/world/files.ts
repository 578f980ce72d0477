/**
 * What commits and pull requests change: made of their shas and counters, so that the same question has the same
 * answer.
 */
import { hashOf, randomOf } from "./commits.ts";
import * as faker from "./faker.ts";
import type { PullIssue } from "./records.ts";
import type { Commit, FileChange } from "./records-code.ts";

const RENAMED = 0.06;
const BINARY = 0.03;
const ADDED = 0.25;
const REMOVED = 0.06;

/** A merge shows nothing of its own. */
export function filesOfCommit(commit: Commit): readonly FileChange[] {
  if ((commit.parents?.length ?? 0) > 1) return [];
  const random = randomOf(commit.sha);
  const count = random.int(1, 3);
  return files(commit.sha, { count, additions: random.int(1, 60), deletions: random.int(0, 30) }, commit.sha);
}

/** As many files and lines as the pull request counts. Its first file is the one that a push changes. */
export function filesOfPull({ pull, id }: PullIssue): readonly FileChange[] {
  const { changedFiles: count, additions, deletions, head } = pull;
  return files(hashOf(`files of ${id}`), { count, additions, deletions }, head.sha);
}

interface Size {
  readonly count: number;
  readonly additions: number;
  readonly deletions: number;
}

/** Sorted by name, as the service shows them. */
function files(seed: string, { count, additions, deletions }: Size, head: string): readonly FileChange[] {
  const random = randomOf(seed);
  const found: FileChange[] = [];
  const names = new Set<string>();
  let [more, less] = [0, 0];
  for (let at = count - 1; at >= 0; at--) {
    let filename = faker.filePath(random);
    while (names.has(filename)) filename = filename.replace(/(-\d+)?(\.\w+)$/, `-${random.int(2, 99_999)}$2`);
    names.add(filename);
    const isFirst = at === 0;
    const share = isFirst ? 0 : random.next() / count;
    const own = isFirst
      ? { additions: additions - more, deletions: deletions - less }
      : { additions: Math.floor(additions * share), deletions: Math.floor(deletions * share) };
    const binary = !isFirst && own.additions + own.deletions === 0 && random.chance(BINARY * 10);
    const renamed = !isFirst && random.chance(RENAMED);
    const status = renamed ? "renamed" : isFirst ? "modified" : statusOf(random.next(), own);
    more += own.additions;
    less += own.deletions;
    found.push({
      filename,
      status,
      sha: hashOf(isFirst ? `blob ${head}` : `blob ${seed} ${filename}`),
      ...own,
      previousFilename: renamed ? `old/${filename}` : null,
      binary,
    });
  }
  return found.sort((a, b) => (a.filename < b.filename ? -1 : 1));
}

function statusOf(roll: number, { additions, deletions }: { additions: number; deletions: number }) {
  if (roll < ADDED && deletions === 0) return "added";
  return roll < ADDED + REMOVED && additions === 0 ? "removed" : "modified";
}

const MAX_LINES = 20_000;

/** Undefined where the service leaves it out: binaries, pure renames, single diffs that are too big. */
export function patchOf({ additions, deletions, binary, filename }: FileChange): string | undefined {
  const changes = additions + deletions;
  if (binary || changes === 0 || changes > MAX_LINES) return undefined;
  const lines = [`@@ -1,${deletions} +1,${additions} @@`];
  for (let at = 1; at <= deletions; at++) lines.push(`-line ${at} of ${filename} as it was`);
  for (let at = 1; at <= additions; at++) lines.push(`+line ${at} of ${filename}`);
  return lines.join("\n");
}
