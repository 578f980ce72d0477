import type { ApiWorld } from "./api-world.ts";

/** A repository and one of each thing in it, by what paths and ids call them. */
export interface Target {
  id: number;
  fullName: string;
  params: Record<string, string>;
  nodes: Record<string, string>;
  pages: string[];
  ownerId: number;
  /** Of one of its issues. */
  title: string;
}

// biome-ignore lint/suspicious/noExplicitAny: answers are picked from, not trusted
type Body = any;

export async function targetOf(
  world: Pick<ApiWorld, "get">,
  { id, fullName }: { id: number; fullName: string },
): Promise<Target> {
  const at = `/repos/${fullName}`;
  const get = async (path: string): Promise<Body> => (await world.get(`${at}${path}`)).body;
  const issue = (await get("/issues?state=all&per_page=100")).find((row: Body) => !row.pull_request);
  const [comment] = await get("/issues/comments?per_page=1");
  const [reviewComment] = await get("/pulls/comments?per_page=1");
  const [label] = await get("/labels?per_page=1");
  const [milestone] = await get("/milestones?state=all&per_page=1");
  const [assignable] = await get("/assignees?per_page=1");
  const repository = await get("");
  let pull: Body;
  let review: Body;
  const closed = await get("/pulls?state=closed&per_page=100");
  const merged = closed.find((row: Body) => row.merged_at);
  for (const row of await get("/pulls?state=all&per_page=50")) {
    pull ??= row;
    [review] = await get(`/pulls/${row.number}/reviews`);
    if (review) {
      pull = row;
      break;
    }
  }
  return {
    id,
    fullName,
    params: {
      number: String(issue.number),
      "pulls/number": String(pull?.number),
      // The check of a merge says nothing of those that were not.
      merged: String(merged?.number),
      "milestones/number": String(milestone?.number),
      name: encodeURIComponent(label?.name),
      "issues/comments/id": String(comment?.id),
      "pulls/comments/id": String(reviewComment?.id),
      "reviews/id": String(review?.id),
      // Who wrote nothing here may be assigned nothing either.
      assignee: assignable?.login,
    },
    nodes: Object.fromEntries(
      Object.entries({ repository, issue, pull, comment, review, reviewComment, label, milestone })
        .filter(([, row]) => row)
        .map(([kind, row]) => [kind, (row as Body).node_id]),
    ),
    ownerId: repository.owner.id,
    title: issue.title,
    pages: [repository, issue, pull, milestone].filter(Boolean).map((row) => row.html_url),
  };
}

/** The path of an operation with values that exist in the target. */
export function pathOf(path: string, target: Target): string {
  if (path === "/pulls/:number/merge") return `/pulls/${target.params.merged}/merge`;
  const segments = path === "/" ? [] : path.slice(1).split("/");
  return segments
    .map((segment, at) => {
      if (!segment.startsWith(":")) return `/${segment}`;
      const name = segment.slice(1);
      const [above = "", before = ""] = [segments[at - 1], segments[at - 2]];
      const { params } = target;
      return `/${params[`${before}/${above}/${name}`] ?? params[`${above}/${name}`] ?? params[name] ?? name}`;
    })
    .join("");
}
