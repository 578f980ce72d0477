import { hash } from "node:crypto";
import { type Json, objectOf, textOf, wholeOf } from "../../json.ts";
import { requireList } from "../../mirror/store/observation.ts";
import type { Upstream, Validator } from "../../upstream/protocol/upstream.ts";
import { PAGE_SIZE } from "../reads/pages.ts";
import { comparable, type ShownRow } from "./newest-changes.ts";
import { EXPLAINED, stillUnexplained, type Unexplained } from "./unexplained.ts";

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
export interface End extends Unexplained {
  /** null: upstream did not show it. */
  digest: string | null;
  /** The least number of rows that upstream's list has. Null: the answer does not say. */
  theirs: number | null;
  /** How many rows we had then. */
  ours: number;
  /** When the list was read up to this end, by our clock, in ISO 8601. Absent: it was looked at. */
  readAt?: string;
}

/** The ends, by path. */
export type Ends = Record<string, End>;

interface Probe {
  kind: ShownRow["kind"];
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
  /** The rows of the ends that differ from before. Null: upstream did not show all of them. */
  changed: ShownRow[] | null;
}

export async function probeLists(
  { upstream }: { upstream: Pick<Upstream, "get"> },
  {
    repositoryId,
    ours,
    before,
    milestones,
    now,
  }: { repositoryId: number; ours: OurCounts; before: Ends | null; milestones: boolean; now: Date },
): Promise<Probed> {
  const ends: Ends = {};
  const validators: Validator[] = [];
  const changed: ShownRow[] = [];
  let isShown = true;
  let needsAudit = false;
  for (const probe of probesFor(ours, { milestones })) {
    const known = before?.[probe.path];
    const answer = await upstream.get(`/repositories/${repositoryId}/${probe.path}`, {
      priority: "catch-up",
      conditional: true,
    });
    const end: End = { digest: null, theirs: null, ours: probe.ours, ...EXPLAINED };
    if (answer.kind === "unchanged") {
      // If the earlier digest is gone, the end counts as changed.
      end.digest = known?.digest ?? "unchanged";
      end.theirs = known?.theirs ?? null;
    } else if (answer.kind === "ok") {
      const rows = requireList(probe.path, answer.body);
      end.digest = digestOf(rows);
      if (end.digest !== known?.digest) changed.push(...rows.map((row) => shownRow(repositoryId, probe.kind, row)));
      if (probe.before !== null) end.theirs = probe.before + rows.length + (answer.links.next ? 1 : 0);
      if (answer.validator) validators.push(answer.validator);
    } else isShown = false;
    if (judge(end, known, now)) needsAudit = true;
    ends[probe.path] = end;
  }
  return { ends, validators, needsAudit, changed: isShown ? changed : null };
}

/** A key that is missing never equals ours, so the row counts as changed. */
function shownRow(r: number, kind: ShownRow["kind"], row: Json): ShownRow {
  const {
    id,
    number: n,
    updated_at: at,
    name,
    color,
    description,
    open_issues: open,
    closed_issues: closed,
  } = objectOf(row);
  if (kind === "label")
    return { r, kind, name: textOf(name) ?? "", color: textOf(color) ?? "", description: textOf(description) };
  const own = kind === "issue_comment" || kind === "review_comment" ? { id: wholeOf(id) ?? 0 } : { n: wholeOf(n) ?? 0 };
  const counts = kind === "milestone" ? { open: wholeOf(open) ?? -1, closed: wholeOf(closed) ?? -1 } : {};
  return { r, kind, ...own, ...counts, at: comparable(textOf(at)) };
}

/**
 * Answers whether the end needs an audit now. What is unexplained stays so until the two numbers are the same, and is
 * noted in the end.
 */
export function judge(end: End, known: End | undefined, now: Date): boolean {
  if (end.theirs === end.ours) return false;
  const { unexplainedSince = null, auditAskedAt = null } = known ?? {};
  Object.assign(end, { unexplainedSince, auditAskedAt });
  if (!isAmiss(end, known)) return false;
  const { wantsAudit, ...unexplained } = stillUnexplained(end, now);
  Object.assign(end, unexplained);
  return wantsAudit;
}

/** Whether each list has as many rows as ours, as far as upstream says. */
export function isExplained(ends: Ends): boolean {
  return Object.values(ends).every(({ theirs, ours }) => theirs === null || theirs === ours);
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

/**
 * Pure. The order of the parameters is ours alone: a list that is read to be merged has validators of its own.
 * @param milestones whether this is the way to ask for them
 */
export function probesFor(ours: OurCounts, { milestones } = { milestones: true }): Probe[] {
  const ordered = "sort=updated&direction=asc";
  const probes = wholeList("label", "labels?", ours.labels);
  if (milestones) probes.push(...wholeList("milestone", "milestones?state=all&", ours.milestones));
  probes.push(issuesEnd(ours.issues, ordered));
  // A new comment moves its issue or pull request to the end of theirs, so an empty list need not be asked for.
  if (ours.comments > 0) probes.push(lastPage("issue_comment", `issues/comments?${ordered}&`, ours.comments));
  if (ours.reviewComments > 0)
    probes.push(lastPage("review_comment", `pulls/comments?${ordered}&`, ours.reviewComments));
  return probes;
}

function issuesEnd(ours: number, ordered: string): Probe {
  if (ours <= MAX_NUMBERED_ISSUES) return lastPage("issue", `issues?${ordered}&state=all&`, ours);
  const path = `issues?direction=desc&per_page=${NEWEST}&sort=updated&state=all`;
  return { kind: "issue", path, ours, before: null };
}

function wholeList(kind: Probe["kind"], list: string, ours: number): Probe[] {
  const last = lastPage(kind, list, ours);
  const size = sizeFor(ours);
  const earlier = Array.from({ length: Math.ceil(ours / size) - 1 }, (_, index) => ({
    kind,
    path: pagePath(list, size, index + 1),
    ours,
    before: null,
  }));
  return ours > 0 ? [...earlier, last] : [last];
}

function lastPage(kind: Probe["kind"], list: string, ours: number): Probe {
  const { size, number, before } = lastPageOf(ours);
  return { kind, path: pagePath(list, size, number), ours, before };
}

/** The last page of a list in which we have so many rows: its size, its number, and how many rows stand before it. Pure. */
export function lastPageOf(ours: number): { size: number; number: number; before: number } {
  const size = sizeFor(ours);
  const number = Math.max(1, Math.ceil(ours / size));
  return { size, number, before: (number - 1) * size };
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
