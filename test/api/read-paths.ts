import { MIRROR_OPERATIONS } from "../../src/api/operations.ts";
import type { Fields } from "../../src/json.ts";
import type { ApiWorld } from "./api-world.ts";

/** A path for each read below a repository. */
export async function readPaths(world: ApiWorld, fullName: string): Promise<string[]> {
  const at = `/repos/${fullName}`;
  const list = async (path: string) => (await world.get(`${at}${path}`)).body as Fields[];
  const [issue] = await list("/issues?state=all");
  const [comment] = await list("/issues/comments");
  const [remark] = await list("/pulls/comments");
  const [label] = await list("/labels");
  const [milestone] = await list("/milestones?state=all");
  const pulls = await list("/pulls?state=all&per_page=100");
  let review: Fields | undefined;
  let pull = pulls[0];
  for (const one of pulls) {
    [review] = await list(`/pulls/${one.number}/reviews`);
    if (!review) continue;
    pull = one;
    break;
  }
  const values: [RegExp, unknown][] = [
    [/^\/issues\/comments\/:id/, `/issues/comments/${comment?.id}`],
    [/^\/pulls\/comments\/:id/, `/pulls/comments/${remark?.id}`],
    [/^\/issues\/:number/, `/issues/${issue?.number}`],
    [/^\/pulls\/:number\/reviews\/:id/, `/pulls/${pull?.number}/reviews/${review?.id}`],
    [/^\/pulls\/:number/, `/pulls/${pull?.number}`],
    [/^\/labels\/:name/, `/labels/${encodeURIComponent(String(label?.name))}`],
    [/^\/milestones\/:number/, `/milestones/${milestone?.number}`],
    [/^\/assignees\/:assignee/, `/assignees/${fullName.split("/")[0]}`],
  ];
  return MIRROR_OPERATIONS.filter(({ route }) => route.run.of === "repository" && route.method === "GET").map(
    ({ path }) => {
      const [form, value] = values.find(([form]) => form.test(path)) ?? [/^\/$/, ""];
      return `${at}${path.replace(form, String(value))}`;
    },
  );
}
