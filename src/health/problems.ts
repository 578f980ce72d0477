import type { Queries } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import type { Task } from "../sync/problems/problems.ts";

/**
 * A failing task and its reason. The latest failing mark of a repository stands for all its marks; each failing part
 * has its own row.
 */
interface ProblemRow {
  task: Task;
  key: string;
  problem: string;
  /** How many problems of this task the repository has. */
  things: number;
}

/** The problems of each repository in words, by its id. */
export async function loadRepositoryProblems(db: Queries): Promise<Map<number, string>> {
  const rows = await db.query<ProblemRow & { repository_id: number }>(sql`
    select distinct on (repository_id, task, part) repository_id, task, key, problem,
        count(*) over (partition by repository_id, task) as things
      from (select *, case task when 'part' then key end as part from problems where repository_id is not null) p
      order by repository_id, task, part, failed_at desc`);
  const sentences = Map.groupBy(rows, (row) => row.repository_id);
  return new Map([...sentences].map(([id, of]) => [id, of.map(problemSentence).join("; ")]));
}

/** Failures that belong to no repository. Selections are left out, because they show their own problems. */
export async function loadCommonProblems({ db }: { db: Queries }): Promise<string[]> {
  const rows = await db.query<ProblemRow>(sql`
    select task, key, problem, 1 as things from problems
      where repository_id is null and task <> 'select' order by task, key`);
  return rows.map(problemSentence);
}

/** Pure. */
function problemSentence({ task, key, problem, things }: ProblemRow): string {
  return `${failingWork(task, key, things)}: ${problem}`;
}

function failingWork(task: Task, key: string, things: number): string {
  switch (task) {
    case "backfill":
      return "its copy fails";
    case "part":
      return `its ${key.replace(/^\d+ /, "")} are missing`;
    case "catch-up":
      return "its catch-ups fail";
    case "sweep":
      return "sweeps fail";
    case "audit":
      return "its audit fails";
    case "hook":
      return "its webhook cannot be checked";
    case "names":
      return "names of accounts cannot be read";
    case "events":
      return "events of changes found in it cannot be made";
    case "refresh":
      return things > 1 ? `${things} single reads fail, the last of them` : `the read of ${key} fails`;
    case "installation":
      return key === "app" ? "the App's installations cannot be read" : `installation ${key} of the App cannot be read`;
    case "token":
      return `it is not known whose token ${key} is`;
    case "select":
      return key;
    default:
      return task satisfies never;
  }
}
