import { hash } from "node:crypto";
import { requireList } from "../../mirror/store/observation.ts";
import type { Upstream } from "../../upstream/client/upstream.ts";
import type { Validator } from "../../upstream/conditional/validators.ts";
import { PAGE_SIZE } from "../reads/pages.ts";

/**
 * A sweep reads the smallest part of a repository's lists that shows any change in them.
 *
 * In a list by change that part is the last page. An added or edited row goes to the end, and a deletion moves later
 * rows forward. Labels and milestones have no such order, so they are read whole. The length of upstream's list against
 * ours tells deletions from other changes.
 */
export interface OurCounts {
  labels: number;
  milestones: number;
  /** Pull requests are among them. */
  issues: number;
  comments: number;
  reviewComments: number;
}

/** A page at the end of a list, as it was last seen. */
export interface End {
  /** null: upstream did not show it. */
  digest: string | null;
  /** The least number of rows that upstream's list has. Null: the answer does not say. */
  theirs: number | null;
  /** How many rows we had then. */
  ours: number;
  /** An audit was asked for because of these two numbers. */
  audited: boolean;
}

/** The ends, by path. */
export type Ends = Record<string, End>;

interface Probe {
  path: string;
  ours: number;
  /** How many rows stand before this page; null: it is not the last page. */
  before: number | null;
}

/**
 * GitHub refuses deep pages of issues by number (seen from the 10,000th row); longer lists are asked from the newest
 * change.
 */
const MAX_NUMBERED_ISSUES = 5_000;
const NEWEST = 30;

export interface Probed {
  ends: Ends;
  validators: Validator[];
  /** A list is shorter than ours, or stays longer: something that only an audit finds. */
  needsAudit: boolean;
}

export async function probeLists(
  { upstream }: { upstream: Pick<Upstream, "get"> },
  {
    repositoryId,
    ours,
    before,
    except,
  }: { repositoryId: number; ours: OurCounts; before: Ends | null; except: readonly List[] },
): Promise<Probed> {
  const ends: Ends = {};
  const validators: Validator[] = [];
  let needsAudit = false;
  for (const probe of probesFor(ours, except)) {
    const known = before?.[probe.path];
    const answer = await upstream.get(`/repositories/${repositoryId}/${probe.path}`, {
      priority: "catch-up",
      conditional: true,
    });
    const end: End = { digest: null, theirs: null, ours: probe.ours, audited: false };
    if (answer.kind === "unchanged") {
      // If the earlier digest is gone, the end counts as changed.
      end.digest = known?.digest ?? "unchanged";
      end.theirs = known?.theirs ?? null;
    } else if (answer.kind === "ok") {
      const rows = requireList(probe.path, answer.body);
      end.digest = digestOf(rows);
      if (probe.before !== null) end.theirs = probe.before + rows.length + (answer.links.next ? 1 : 0);
      if (answer.validator) validators.push(answer.validator);
    }
    if (judge(end, known)) needsAudit = true;
    ends[probe.path] = end;
  }
  return { ends, validators, needsAudit };
}

/** Answers whether the end needs an audit that was not asked for yet; if so, notes in the end that it is asked for. */
export function judge(end: End, known: End | undefined): boolean {
  end.audited = known !== undefined && known.theirs === end.theirs && known.ours === end.ours && known.audited;
  if (end.audited || !isAmiss(end, known)) return false;
  end.audited = true;
  return true;
}

export function digestOf(rows: readonly unknown[]): string {
  return hash("sha256", JSON.stringify(rows), "base64url");
}

/** If upstream's list is longer, the catch-up comes first: it finds new rows by their dates. */
function isAmiss({ digest, theirs, ours }: End, known: End | undefined): boolean {
  if (theirs === null) return false;
  return theirs < ours || (theirs > ours && known?.digest === digest);
}

/** Whether any end differs from before. */
export function hasMoved(before: Ends | null, now: Ends): boolean {
  const digests = (ends: Ends) => JSON.stringify(Object.entries(ends).map(([path, { digest }]) => [path, digest]));
  return before === null || digests(before) !== digests(now);
}

/** Lists that a sweep may ask for in another way. */
export type List = "milestones";

/** Pure. The order of the parameters is ours alone: a list that is read to be merged has validators of its own. */
export function probesFor(ours: OurCounts, except: readonly List[] = []): Probe[] {
  const ordered = "sort=updated&direction=asc";
  const probes = wholeList("labels?", ours.labels);
  if (!except.includes("milestones")) probes.push(...wholeList("milestones?state=all&", ours.milestones));
  if (ours.issues <= MAX_NUMBERED_ISSUES) probes.push(lastPage(`issues?${ordered}&state=all&`, ours.issues));
  else
    probes.push({
      path: `issues?direction=desc&per_page=${NEWEST}&sort=updated&state=all`,
      ours: ours.issues,
      before: null,
    });
  // A new comment moves its issue or pull request to the end of theirs, so an empty list need not be asked for.
  if (ours.comments > 0) probes.push(lastPage(`issues/comments?${ordered}&`, ours.comments));
  if (ours.reviewComments > 0) probes.push(lastPage(`pulls/comments?${ordered}&`, ours.reviewComments));
  return probes;
}

function wholeList(list: string, ours: number): Probe[] {
  const last = lastPage(list, ours);
  const size = sizeFor(ours);
  const earlier = Array.from({ length: Math.ceil(ours / size) - 1 }, (_, index) => ({
    path: pagePath(list, size, index + 1),
    ours,
    before: null,
  }));
  return ours > 0 ? [...earlier, last] : [last];
}

function lastPage(list: string, ours: number): Probe {
  const size = sizeFor(ours);
  const page = Math.max(1, Math.ceil(ours / size));
  return { path: pagePath(list, size, page), ours, before: (page - 1) * size };
}

function pagePath(list: string, size: number, page: number): string {
  return `${list}per_page=${size}&page=${page}`;
}

/**
 * Chooses a page size that leaves room on the last page. On a full last page a new row would not show, since it would
 * begin the next page.
 */
function sizeFor(ours: number): number {
  let size = PAGE_SIZE;
  while (ours > 0 && ours % size === 0) size -= 1;
  return size;
}
