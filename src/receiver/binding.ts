import type { HookTarget } from "../config/hook-secrets.ts";
import type { Delivery } from "../inbox/delivery.ts";
import { type Fields, isObject, objectOf } from "../json.ts";
import { DeliveryFault } from "./fault.ts";
import { parsedObject } from "./payload.ts";

/**
 * Sees that a delivery tells only of the target whose secret signed it.
 * @throws DeliveryFault 400 when it tells of something else
 */
export function requireOf(
  target: HookTarget,
  { event, repositoryId, payload }: Pick<Delivery, "event" | "repositoryId" | "payload">,
): void {
  const isOf = repositoryId === null ? mayConcernNone(target, event, payload) : concerns(target, repositoryId, payload);
  if (isOf) return;
  throw new DeliveryFault(
    400,
    `The payload is not of the ${target.type} ${target.id}, whose secret signed it: each hook tells of its own`,
  );
}

/**
 * Only an App hears of its installations, and a repository's hook of nothing beyond its repository but itself. Others are told
 * of what an organization's hook brings, so it has to be of that organization.
 */
function mayConcernNone({ type, id }: HookTarget, event: string, payload: Buffer): boolean {
  switch (type) {
    case "integration":
      return true;
    case "organization": {
      const { organization } = parsedObject(payload.toString("utf8"));
      return !event.startsWith("installation") && (!isObject(organization) || organization.id === id);
    }
    case "repository":
      if (event.startsWith("installation")) return false;
      return event === "ping" || !isObject(parsedObject(payload.toString("utf8")).organization);
    default:
      return type satisfies never;
  }
}

function concerns({ type, id }: HookTarget, repositoryId: number, payload: Buffer): boolean {
  switch (type) {
    case "repository":
      return repositoryId === id;
    case "organization":
      return isOfOwner(parsedObject(payload.toString("utf8")), id);
    case "integration":
      // Deliveries to an App name the installation. In people's texts quotes are escaped, so they cannot look like it.
      return payload.includes('"installation":{') || isObject(parsedObject(payload.toString("utf8")).installation);
    default:
      return type satisfies never;
  }
}

function isOfOwner({ organization, repository }: Fields, organizationId: number): boolean {
  const owner = objectOf(objectOf(repository).owner);
  return objectOf(organization).id === organizationId && owner.id === organizationId;
}
