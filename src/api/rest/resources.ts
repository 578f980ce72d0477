import type { Kind } from "../../kinds/contract/kind.ts";
import { findResource, findWithList, type ResourcePlace } from "../../mirror/read/resources.ts";
import type { StoredDocument } from "../../mirror/render/rendering.ts";
import type { RepositoryCall } from "../call/call.ts";
import { notFound, unread } from "../dialect/fault.ts";
import { numberParam } from "./page.ts";

/** @throws UnreadFault if the mirror does not hold the repository's list of the kind */
export async function requireHeldList({ ctx, repository }: RepositoryCall, kind: Kind): Promise<void> {
  const [isHeld] = await findWithList(ctx.db, kind, [repository.id]);
  if (!isHeld) throw unread();
}

/** The resource that the path names, from a list that the mirror holds. @throws UnreadFault, ApiFault 404 */
export async function requireResource(
  call: RepositoryCall,
  kind: Kind,
): Promise<{ found: StoredDocument; place: ResourcePlace }> {
  await requireHeldList(call, kind);
  const { ctx, repository, params } = call;
  const id = numberParam(params.id);
  const place = id !== null && { repositoryId: repository.id, id };
  const found = place && (await findResource(ctx.db, kind, place));
  if (!place || !found) throw notFound();
  return { found, place };
}
