import type { GraphqlCall, Node } from "../call.ts";
import { typedError } from "../errors.ts";
import { decodeId } from "./node-id.ts";

/** @throws GraphQLError NOT_FOUND, also for what the caller may not see */
export async function repositoryOf(
  call: GraphqlCall,
  owner: string,
  name: string,
  followRenames: boolean,
): Promise<Node> {
  const repository = await call.repositoryNamed(`${owner}/${name}`, followRenames);
  if (repository) return repository;
  throw typedError("NOT_FOUND", `Could not resolve to a Repository with the name '${owner}/${name}'.`);
}

/** The resource of a global id of either generation. @throws GraphQLError NOT_FOUND */
export async function nodeOf(call: GraphqlCall, globalId: string): Promise<Node> {
  const decoded = decodeId(globalId);
  const node = decoded && (await load(call, decoded.type, decoded.id));
  if (node) return node;
  throw typedError("NOT_FOUND", `Could not resolve to a node with the global id of '${globalId}'`);
}

async function load(
  call: GraphqlCall,
  type: NonNullable<ReturnType<typeof decodeId>>["type"],
  id: number,
): Promise<Node | null> {
  switch (type) {
    case "Repository":
      return call.repository(id);
    case "User":
    case "Organization":
    case "Bot":
      return call.user(id);
    default:
      return call.byId(type, id);
  }
}
