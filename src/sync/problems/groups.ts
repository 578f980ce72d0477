import type { Context } from "../../context.ts";

/** Says of each repository which others are asked for with the same credential: its group is spent when that one is. */
export async function groupsOf(
  { upstream }: Pick<Context, "upstream">,
  repositoryIds: readonly number[],
): Promise<(repositoryId: number) => number | undefined> {
  const groups = await upstream.groups(repositoryIds);
  const byId = new Map(groups.flatMap((ids, group) => ids.map((id) => [id, group] as const)));
  return (repositoryId) => byId.get(repositoryId);
}
