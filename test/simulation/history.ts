/**
 * What upstream showed of each issue, and from which moment on. With it a test can check what an answer of the mirror
 * says about its own age.
 */
import type { Issue, Repository } from "../../src/simulator/world/records.ts";

/** The fields that webhooks and catch-ups tell of every issue, as REST has them. */
export interface Shown {
  title: string;
  state: string;
  updatedAt: string;
}

interface Version extends Shown {
  /** Upstream surely showed this version at this moment. */
  at: number;
}

/**
 * What an answer shows: something as fresh as it says, something older than it says, or something that upstream never
 * showed.
 */
export type Verdict = "held" | "older" | "unknown";

export class History {
  readonly #versions = new Map<Issue, Version[]>();

  constructor(repositories: readonly Repository[]) {
    for (const { rows } of repositories) for (const issue of rows.byNumber) if (issue) this.note(issue, 0);
  }

  /** To be called after each change of the issue. */
  note(issue: Issue, at: number): void {
    const versions = this.#versions.get(issue) ?? [];
    this.#versions.set(issue, versions);
    const shown = { title: issue.title, state: issue.state, updatedAt: asText(issue.updatedAt) };
    const last = versions.at(-1);
    if (!last || !isSame(last, shown)) versions.push({ ...shown, at });
  }

  /**
   * Judges each field by itself, because a webhook that tells of one field alone can make that one known earlier.
   * @param confirmedAt the moment for which the answer says that it holds
   */
  judge(issue: Issue, shown: Shown, confirmedAt: number): Verdict {
    const versions = this.#versions.get(issue) ?? [];
    let verdict: Verdict = "held";
    for (const field of ["title", "state", "updatedAt"] as const) {
      const newest = versions.findLastIndex((version) => version[field] === shown[field]);
      if (newest < 0) return "unknown";
      const successor = versions[newest + 1];
      if (successor && successor.at < confirmedAt) verdict = "older";
    }
    return verdict;
  }

  /** All versions of an issue, for a message about a wrong answer. */
  versionsOf(issue: Issue): readonly unknown[] {
    return (this.#versions.get(issue) ?? []).map(({ at, ...shown }) => ({ at: new Date(at).toISOString(), ...shown }));
  }
}

function isSame(one: Shown, other: Shown): boolean {
  return one.title === other.title && one.state === other.state && one.updatedAt === other.updatedAt;
}

function asText(seconds: number): string {
  return new Date(seconds * 1_000).toISOString().replace(".000Z", "Z");
}
