import { decoded } from "../../../http/router.ts";
import { decodeId } from "../../dialect/node-id.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Node } from "../call/node.ts";
import { typedError } from "../run/errors.ts";
import { given } from "./fields.ts";

/** The resource of a global id of either generation. @throws GraphQLError NOT_FOUND, FORBIDDEN */
export async function nodeOf(call: GraphqlCall, globalId: string): Promise<Node> {
  const named = decodeId(globalId);
  const node = named && (await load(call, named.type, named.id));
  if (node) call.named(globalId, node);
  if (node) return given(call, node);
  call.lacks();
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

/**
 * The mirrored resource with this page: a repository, issue, pull request, milestone or account. Null: the page is any
 * other's.
 * @throws GraphQLError FORBIDDEN
 */
export async function resourceAt(call: GraphqlCall, url: string): Promise<Node | null> {
  const found = await findAt(call, url);
  if (!found) call.lacks();
  return found && given(call, found);
}

async function findAt(call: GraphqlCall, url: string): Promise<Node | null> {
  const address = URL.parse(url);
  const [owner, name, kind, number, ...more] =
    address?.pathname
      .split("/")
      .filter(Boolean)
      .map((one) => decoded(one) ?? one) ?? [];
  if (!address || !owner || more.length > 0) return null;
  if (name === undefined) return isPageOf(await call.userNamed(owner), address);
  const repository = isPageOf(await call.repositoryNamed(`${owner}/${name}`, true), address);
  if (!repository || kind === undefined) return repository;
  const at = /^\d{1,9}$/.test(number ?? "") ? Number(number) : null;
  if (at === null) return null;
  if (kind === "milestone") return call.numbered("Milestone", repository.repositoryId, at);
  // The addresses of an issue and of a pull request lead to each other.
  if (kind !== "issues" && kind !== "pull") return null;
  return (
    (await call.numbered("PullRequest", repository.repositoryId, at)) ??
    (await call.numbered("Issue", repository.repositoryId, at))
  );
}

/** The node, if its page lies on the address's host. Pages lie at upstream: elsewhere a path means nothing. */
function isPageOf(node: Node | null, address: URL): Node | null {
  return node && URL.parse(String(node.rest.html_url))?.host === address.host ? node : null;
}
