/** What commits show of those before them, and of the pull request that brought them. */
import {
  type CommitPlace,
  findHistory,
  findPullsOfCommits,
  type HeldHistory,
  type HistoryPart,
  historySource,
} from "../../../mirror/read/history.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Node } from "../call/node.ts";
import { type Connection, heldConnection, mapped, type PageArguments, storedConnection } from "./connection.ts";
import { lacking, type Resolver, readsCodeOf } from "./fields.ts";

type HistoryArguments = PageArguments & { since?: unknown; until?: unknown };

/** The commits before a commit, and itself. A page that ends with the last one that is here is upstream's to show. */
export const history: Resolver = async (
  { repositoryId, rest: { oid } }: Node,
  args: HistoryArguments,
  call: GraphqlCall,
  info,
): Promise<Connection> => {
  if (!(await readsCodeOf(call, repositoryId, "contents"))) lacking(call, "commits");
  const part: HistoryPart = {
    repositoryId,
    sha: String(oid),
    since: momentOf(args.since, call),
    until: momentOf(args.until, call),
  };
  const held = await call
    .loader<HistoryPart, HeldHistory | null>("histories", (parts) =>
      // A statement each, which looks at the whole history: so they take their caller's place among the searches.
      Promise.all(parts.map((one) => findHistory(call.searchDb, one))),
    )
    .load(part);
  if (!held) return lacking(call, "commits");
  const stored = storedConnection(call, info, args, {
    kind: "Commit",
    source: historySource(part),
    parent: { r: repositoryId, n: held.from },
  });
  // The document of a commit calls its hash as REST does.
  const shown = mapped(stored, (node) => ({ ...node, rest: { ...node.rest, oid: node.rest.sha ?? null } }));
  return { ...(isWhole(held) ? shown : upToHeld(shown, args, call)), totalCount: () => held.total };
};

const isWhole = ({ held, total }: HeldHistory) => held >= total;

function upToHeld(shown: Connection, { first }: PageArguments, call: GraphqlCall): Connection {
  const within = async () => {
    if (first == null || !(await shown.pageInfo()).hasNextPage) lacking(call, "commits");
  };
  return {
    ...shown,
    nodes: async (...asked) => within().then(() => shown.nodes(...asked)),
    edges: async () => within().then(() => shown.edges()),
    pageInfo: async () => within().then(() => shown.pageInfo()),
  };
}

/** An ISO 8601 time, as the service's `GitTimestamp`. What it makes of others is not known. */
function momentOf(text: unknown, call: GraphqlCall): Date | null {
  if (text == null) return null;
  const isTime = typeof text === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)$/.test(text);
  const moment = new Date(isTime ? text : Number.NaN);
  return Number.isNaN(moment.getTime()) ? lacking(call, "commits") : moment;
}

/** The pull request that brought a commit. */
export const pullsOfCommit: Resolver = ({ repositoryId, rest: { oid } }: Node, args: PageArguments, call, info) =>
  call.withRight({ repositoryId, right: "pulls" }, async () => {
    if (!(await readsCodeOf(call, repositoryId, "contents"))) lacking(call, "commits");
    const number = await call
      .loader<CommitPlace, number | null | undefined>("pulls of commits", (commits) =>
        findPullsOfCommits(call.searchDb, commits),
      )
      .load({ repositoryId, sha: String(oid) });
    const pull = number == null ? null : await call.numbered("PullRequest", repositoryId, number);
    if (number === undefined || (number !== null && !pull)) return lacking(call, "commits");
    return heldConnection(info, args, pull ? [pull] : [], { keyOf: () => "" });
  });
