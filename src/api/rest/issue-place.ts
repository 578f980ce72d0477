import { isMirroredPull } from "../../mirror/read/pulls.ts";
import type { ApiContext } from "../call.ts";
import type { IssuePlace, Place } from "./writes/issue-writes.ts";

/** An issue or pull request to write to. The mirror need not have heard of it: upstream decides. */
export async function issuePlace(
  { db }: Pick<ApiContext, "db">,
  { id, fullName }: Place,
  number: number,
): Promise<IssuePlace> {
  return { id, fullName, number, isPull: await isMirroredPull(db, id, number) };
}
