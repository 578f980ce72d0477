import { setTimeout as delay } from "node:timers/promises";
import { control } from "../upstream.ts";
import { issuePath, listPath, type Row, type Truth } from "./truth.ts";

/** The newest issues of each repository, which are read, and which most changes concern. */
const FOLLOWED = 5;

/** What people do, as often as it stands here. Each names one issue, or opens one. */
const CHANGES = ["comment", "comment", "comment", "edit", "edit", "close", "reopen", "open", "openPull"] as const;

/** A repository that is read, and the numbers of the issues of it that are read one by one. */
export interface Followed {
  name: string;
  numbers: readonly number[];
}

/** The addresses that are read. */
export function readPaths(repositories: readonly Followed[]): { lists: string[]; issues: string[] } {
  return {
    lists: repositories.map(({ name }) => listPath(name)),
    issues: repositories.flatMap(({ name, numbers }) => numbers.map((number) => issuePath(name, number))),
  };
}

/** Reads all of these repositories, past every limit. */
export async function readTruth(url: string, truth: Truth, names: readonly string[]): Promise<Followed[]> {
  const repositories: Followed[] = [];
  for (const name of names) {
    const state = (await control(url, "GET", `state?repository=${encodeURIComponent(name)}`)) as {
      repositories: { issues: Row[] }[];
    };
    const rows = state.repositories[0]?.issues ?? [];
    truth.begin(name, rows);
    const issues = rows.filter(({ pull_request: pull }) => !pull).sort((a, b) => b.number - a.number);
    repositories.push({ name, numbers: issues.slice(0, FOLLOWED).map(({ number }) => number) });
  }
  return repositories;
}

/**
 * Changes one repository after the other until the signal comes, so many in a second.
 * @throws Error for a change that upstream refuses
 */
export async function changeOn(
  url: string,
  truth: Truth,
  { repositories, perSecond, signal }: { repositories: readonly Followed[]; perSecond: number; signal: AbortSignal },
): Promise<void> {
  const beganAt = performance.now();
  for (let count = 0; ; count++) {
    await delay(Math.max(0, beganAt + (count * 1_000) / perSecond - performance.now()));
    if (signal.aborted) return;
    const { name, numbers } = repositories[count % repositories.length] as Followed;
    const round = Math.floor(count / repositories.length);
    const row = truth.row(name, numbers[round % numbers.length] as number);
    const kind = CHANGES[round % CHANGES.length] as (typeof CHANGES)[number];
    truth.changed(name, await change(url, name, row, kind, count), performance.now());
  }
}

async function change(
  url: string,
  repository: string,
  row: Row,
  kind: (typeof CHANGES)[number],
  nth: number,
): Promise<Row> {
  const mutate = async <T>(op: string, more: object) =>
    (await control(url, "POST", "mutate", { op, repository, ...more })) as T;
  const { number } = row;
  switch (kind) {
    case "comment": {
      const comment = await mutate<{ created_at: string }>("createComment", { number, body: `Comment ${nth}` });
      return { ...row, comments: row.comments + 1, updated_at: comment.created_at };
    }
    case "edit":
      return await mutate<Row>("editIssue", { number, title: `Title ${nth}` });
    case "close":
    case "reopen":
      return await mutate<Row>("editIssue", { number, state: kind === "close" ? "closed" : "open" });
    case "open":
      return await mutate<Row>("createIssue", { title: `Issue ${nth}` });
    case "openPull":
      return await mutate<Row>("createPull", { title: `Pull request ${nth}`, head: `branch-${nth}` });
    default:
      return kind satisfies never;
  }
}
