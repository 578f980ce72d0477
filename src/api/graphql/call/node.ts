import type { Fields, Json } from "../../../json.ts";
import type { RepositoryNodeKind } from "../../../mirror/read/nodes.ts";
import type { OtherNodeType } from "../../dialect/node-id.ts";

type ActorKind = "User" | "Organization" | "Bot" | "Mannequin";
export type NodeKind =
  | RepositoryNodeKind
  | OtherNodeType
  | "Repository"
  | ActorKind
  | "ReviewRequest"
  | "PullRequestReviewThread"
  | "Team"
  | "PullRequestCommit"
  | "PullRequestChangedFile"
  | "GitActor"
  | "RepositoryTopic"
  | "ProjectCard"
  | "StatusCheckRollup"
  | "App"
  | "AutoMergeRequest"
  | "Tag"
  | "TimelineEvent";

/** A resource as REST shows it, on its way to be shown by GraphQL. */
export interface Node {
  kind: NodeKind;
  /** The repository that it belongs to, or its own id; 0 for accounts. */
  repositoryId: number;
  rest: Fields;
  /** Takes the text that was written of this resource, if one view shows it. */
  keep?: (text: string) => void;
}

/** REST shows deleted accounts as this user; GraphQL shows null. */
const GHOST_ID = 10_137;

/** The account that a REST resource embeds. */
export function actorOf(value: Json | undefined): Node | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  return value.id === GHOST_ID && value.login === "ghost"
    ? null
    : { kind: actorKind(value), repositoryId: 0, rest: value };
}

const ACTORS: readonly ActorKind[] = ["User", "Organization", "Bot", "Mannequin"];

function actorKind({ type }: Fields): ActorKind {
  return ACTORS.find((kind) => kind === type) ?? "User";
}

/** The account under its own kind: user, organization or bot. */
export function asActor(node: Node | null): Node | null {
  return node && { ...node, kind: actorKind(node.rest) };
}
