/** The counts of reactions. REST tells only these, so who reacted is not known. */
import { type Fields, objectOf } from "../../../json.ts";
import type { GraphqlCall } from "../call/call.ts";
import { typedError } from "../run/errors.ts";
import type { Resolver } from "./fields.ts";

/** REST's names, in the order in which the service lists the groups. */
const REACTION_CONTENTS = {
  "+1": "THUMBS_UP",
  "-1": "THUMBS_DOWN",
  laugh: "LAUGH",
  hooray: "HOORAY",
  confused: "CONFUSED",
  heart: "HEART",
  rocket: "ROCKET",
  eyes: "EYES",
} as const;

/** The groups of reactions, empty ones included, as the service shows them. Null: upstream has not told the counts. */
export const reactionGroups: Resolver = ({ rest }, _args, call) => groupsByContent(rest, call);

/** REST tells a pull request's reactions on its issue side. */
export const pullReactionGroups: Resolver = async ({ repositoryId, rest: { number } }, _args, call) =>
  groupsByContent((await call.numbered("Issue", repositoryId, Number(number)))?.rest ?? {}, call);

interface ReactionArguments {
  content?: string | null;
}

/** How many reactions there are; of one kind if the caller names it. */
export const reactions: Resolver = ({ rest }, args: ReactionArguments, call) => countOf(rest, args, call);

export const pullReactions: Resolver = async ({ repositoryId, rest: { number } }, args: ReactionArguments, call) =>
  countOf((await call.numbered("Issue", repositoryId, Number(number)))?.rest ?? {}, args, call);

function countOf({ reactions }: Fields, { content }: ReactionArguments, call: GraphqlCall): { totalCount: number } {
  if (!reactions) {
    call.lacks();
    throw typedError("SERVICE_UNAVAILABLE", "The reactions to this are not mirrored yet.");
  }
  const [key = "total_count"] = Object.entries(REACTION_CONTENTS).find(([, name]) => name === content) ?? [];
  return { totalCount: Number(objectOf(reactions)[key] ?? 0) };
}

function groupsByContent({ reactions }: Fields, call: GraphqlCall): object[] | null {
  if (!reactions) {
    call.lacks();
    return null;
  }
  const counts = objectOf(reactions);
  return Object.entries(REACTION_CONTENTS).map(([key, content]) => {
    const totalCount = Number(counts[key] ?? 0);
    return { content, users: { totalCount }, reactors: { totalCount } };
  });
}
