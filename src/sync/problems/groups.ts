import type { Context } from "../../context.ts";

/**
 * Groups repositories by the credential that reads them. When the credential's quota is spent, the whole group waits.
 */
export async function credentialGroups(
  { upstream }: Pick<Context, "upstream">,
  repositoryIds: readonly number[],
): Promise<(repositoryId: number) => number | undefined> {
  const groups = await upstream.groups(repositoryIds);
  const byId = new Map(groups.flatMap((ids, group) => ids.map((id) => [id, group] as const)));
  return (repositoryId) => byId.get(repositoryId);
}
