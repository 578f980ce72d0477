/** What pull requests show of their commits and files, and what commits show of themselves. */

import type { GraphQLError } from "graphql";
import { type Fields, objectOf, rowsOf, textOf } from "../../../json.ts";
import { type CommitPlace, findHistoryCommits } from "../../../mirror/read/history.ts";
import { countHeldLists, findCommits, listedSource } from "../../../mirror/read/lists.ts";
import { sees } from "../../../mirror/read/repositories.ts";
import type { ListName } from "../../../mirror/store/lists.ts";
import { readsCode } from "../../callers/permissions.ts";
import type { GraphqlCall } from "../call/call.ts";
import { actorOf, type Node } from "../call/node.ts";
import { typedError } from "../run/errors.ts";
import type { FieldInfo } from "../run/plan.ts";
import { avatarOf } from "./accounts.ts";
import { rollupOf, statusOf, suitesOf } from "./checks.ts";
import {
  type Connection,
  heldConnection,
  mapped,
  type PageArguments,
  pageRequest,
  storedConnection,
} from "./connection.ts";
import {
  commitNode,
  enumValue,
  fieldNotHeld,
  ofRepository,
  onceRead,
  pathnameOf,
  type Resolver,
  rest,
  type TypeResolvers,
} from "./fields.ts";
import { history, pullsOfCommit } from "./history.ts";

/** Whether the mirror holds this list of the pull request as a whole. */
async function holds(call: GraphqlCall, list: ListName, { repositoryId, rest: { number } }: Node): Promise<boolean> {
  type CommitPlace = { repositoryId: number; number: number };
  const held = call.loader<CommitPlace, number | null>(`held ${list}`, (places, db) =>
    countHeldLists(db, list, places),
  );
  return (await held.load({ repositoryId, number: Number(number) })) !== null;
}

const ofList = (call: GraphqlCall, info: FieldInfo, args: PageArguments, node: Node, list: ListName): Connection =>
  storedConnection(call, info, args, {
    kind: list === "commits" ? "PullRequestCommit" : "PullRequestChangedFile",
    source: listedSource(list),
    parent: { r: node.repositoryId, n: Number(node.rest.number) },
  });

/** The commits of a pull request. If they are not mirrored, only their number and the last one are shown. */
export const pullCommits: Resolver = async (node, args: PageArguments, call: GraphqlCall, info: FieldInfo) => {
  const isLast = args.last === 1 && args.first == null && !args.before;
  if (isLast) return lastCommit(node, args, call, info);
  if (await holds(call, "commits", node)) return ofPull(ofList(call, info, args, node, "commits"), node);
  pageRequest(info, args, (cursor) => cursor);
  const refused = () => {
    call.lacks();
    throw typedError(
      "UNPROCESSABLE",
      "Of the commits of this pull request only their number and the last one are mirrored: ask for `commits(last: 1)`.",
    );
  };
  const totalCount = () => onceRead("commits")(node, args, call, info);
  return { totalCount, nodes: refused, edges: refused, pageInfo: refused };
};

function lastCommit(node: Node, args: PageArguments, call: GraphqlCall, info: FieldInfo): object {
  const totalCount = () => onceRead("commits")(node, args, call, info);
  const last: Node = { kind: "PullRequestCommit", repositoryId: node.repositoryId, rest: { pull: node.rest } };
  const connection = heldConnection(info, args, [last], { keyOf: () => String(objectOf(node.rest.head).sha) });
  const pageInfo = async () => ({ ...(await connection.pageInfo()), hasPreviousPage: Number(totalCount()) > 1 });
  return { ...connection, totalCount, pageInfo };
}

/** Adds the pull request to each commit, since a row of the list does not name it. */
function ofPull(connection: Connection, { rest: pull }: Node): Connection {
  return mapped(connection, (node) => ({ ...node, rest: { commit: node.rest, pull } }));
}

/** The files of a pull request. Upstream answers if the mirror does not hold them all. */
export const pullFiles: Resolver = async (node, args: PageArguments, call: GraphqlCall, info: FieldInfo) => {
  if (await holds(call, "files", node)) return ofList(call, info, args, node, "files");
  pageRequest(info, args, (cursor) => cursor);
  call.lacks();
  throw typedError("UNPROCESSABLE", "The files of this pull request are not mirrored.");
};

/**
 * The whole commit, if the history or the list of some pull request has it. Otherwise upstream answers.
 * @throws GraphQLError the same one for all fields of a commit: making each field's own would take long
 */
async function wholeCommit({ repositoryId, rest: known }: Node, call: GraphqlCall): Promise<Fields> {
  if (known.sha !== undefined) return known;
  const commit = await call
    .loader("whole commits", (places: CommitPlace[]) => Promise.all(places.map((place) => findWhole(place, call))))
    .load({ repositoryId, sha: String(known.oid) });
  if (commit instanceof Error) throw commit;
  return commit;
}

async function findWhole({ repositoryId, sha }: CommitPlace, call: GraphqlCall): Promise<Fields | GraphQLError> {
  const { rest: repository } = await call.requireRepositoryById(repositoryId);
  const { access, caller } = call;
  const seen = { id: repositoryId, isPrivate: repository.private === true };
  const ofHistory = readsCode(caller, access, seen, "contents")
    ? await call
        .loader("commits of histories", (places: CommitPlace[], db) => findHistoryCommits(db, places))
        .load({ repositoryId, sha })
    : null;
  const found =
    ofHistory ??
    (sees(access, seen, "pulls")
      ? await call
          .loader("commits by hash", (places: CommitPlace[], db) => findCommits(db, places))
          .load({ repositoryId, sha })
      : null);
  const [commit] = found ? await call.unfold("Commit", [found]) : [];
  if (commit) return commit.rest;
  call.lacks();
  return typedError("UNPROCESSABLE", "Of this commit only its hash is mirrored.");
}

/** The commit of a hash, if the mirror knows that it is one. @throws GraphQLError as `wholeCommit` */
export async function requireCommit(call: GraphqlCall, repositoryId: number, sha: string): Promise<Node> {
  const node: Node = { kind: "Commit", repositoryId, rest: { oid: sha } };
  return { ...node, rest: { ...(await wholeCommit(node, call)), oid: sha } };
}

const ofWhole =
  (show: (commit: Fields, call: GraphqlCall) => unknown): Resolver =>
  async (node, _args, call) =>
    show(await wholeCommit(node, call), call);

const git = ({ commit }: Fields): Fields => objectOf(commit);

/**
 * The longest headline that is shown as it is. How the service shortens longer ones is not documented; nor is what it
 * makes of a second line of text.
 */
const HEADLINE = 72;

function wordsOf(commit: Fields, call: GraphqlCall): { headline: string; body: string } {
  const [headline = "", blank = "", ...body] = (textOf(git(commit).message) ?? "").split("\n");
  if (headline.length > HEADLINE || blank !== "") call.lacks();
  return { headline, body: body.join("\n") };
}

const gitActor =
  (key: "author" | "committer"): Resolver =>
  async (node, _args, call) =>
    gitActorOf(await wholeCommit(node, call), key, node);

function gitActorOf(commit: Fields, key: "author" | "committer", { repositoryId }: Node): Node | null {
  const said = git(commit)[key] ?? null;
  return said === null
    ? null
    : { kind: "GitActor", repositoryId, rest: { ...objectOf(said), account: commit[key] ?? null } };
}

/** The author alone. Whom a trailer of the message means, only upstream knows. */
const authors: Resolver = async (node, args: PageArguments, call, info) => {
  const commit = await wholeCommit(node, call);
  const author = gitActorOf(commit, "author", node);
  if (!author || /co-authored-by/i.test(textOf(git(commit).message) ?? "")) fieldNotHeld(call, info, node.kind);
  return heldConnection(info, args, [author], { keyOf: () => "" });
};

export const commitPage = async ({ repositoryId, rest: { oid } }: Node, call: GraphqlCall) =>
  `${(await call.requireRepositoryById(repositoryId)).rest.html_url}/commit/${oid}`;

/** GraphQL's names of changes that differ from REST's. GraphQL has no name for what REST calls unchanged. */
const CHANGES: ReadonlyMap<string, string> = new Map([["removed", "DELETED"]]);

const parents: Resolver = async (node, args: PageArguments, call, info) => {
  const { repositoryId } = node;
  const held = rowsOf((await wholeCommit(node, call)).parents).map(
    ({ sha }, at): Node => ({ kind: "Commit", repositoryId, rest: { oid: sha ?? null, id: at } }),
  );
  return heldConnection(info, args, held, { keyOf: (_node, at) => String(at).padStart(4, "0") });
};

/** The page of a commit among those of its pull request. */
const pageInPull = ({ rest: { commit, pull } }: Node): string => {
  const { html_url: page, head } = objectOf(pull);
  return `${page}/commits/${commit === undefined ? objectOf(head).sha : objectOf(commit).sha}`;
};

export const commitResolvers: Readonly<Record<string, TypeResolvers>> = {
  Commit: {
    ...ofRepository,
    oid: rest("oid"),
    id: async (node, _args, call) => call.idOf((await wholeCommit(node, call)).node_id, node.repositoryId),
    statusCheckRollup: ({ repositoryId, rest: { oid } }, _args, call, info) => rollupOf(call, info, repositoryId, oid),
    status: ({ repositoryId, rest: { oid } }, _args, call, info) => statusOf(call, info, repositoryId, oid),
    history,
    associatedPullRequests: pullsOfCommit,
    checkSuites: ({ repositoryId, rest: { oid } }, args: PageArguments, call, info) =>
      suitesOf(call, info, args, { repositoryId, sha: String(oid) }),
    parents,
    abbreviatedOid: ({ rest: { oid } }) => String(oid).slice(0, 7),
    url: (node, _args, call) => commitPage(node, call),
    commitUrl: (node, _args, call) => commitPage(node, call),
    commitResourcePath: async (node, _args, call) => pathnameOf(await commitPage(node, call)),
    resourcePath: async (node, _args, call) => pathnameOf(await commitPage(node, call)),
    message: ofWhole((commit) => git(commit).message),
    messageHeadline: ofWhole((commit, call) => wordsOf(commit, call).headline),
    messageBody: ofWhole((commit, call) => wordsOf(commit, call).body),
    authoredDate: ofWhole((commit) => objectOf(git(commit).author).date),
    committedDate: ofWhole((commit) => objectOf(git(commit).committer).date),
    author: gitActor("author"),
    committer: gitActor("committer"),
    authors,
  },
  GitActor: {
    name: rest("name"),
    email: rest("email"),
    // REST shows the moment alone, and not the author's time zone.
    date: ({ rest: { date } }, _args, call) => {
      call.lacks();
      return date ?? null;
    },
    // Only the service finds a picture for an address without an account.
    avatarUrl: ({ rest: { account }, kind }, { size }: { size?: number | null }, call, info) =>
      account == null ? fieldNotHeld(call, info, kind) : avatarOf(objectOf(account), size),
    user: ({ rest: { account } }) => {
      const actor = actorOf(account);
      return actor?.kind === "User" ? actor : null;
    },
  },
  PullRequestCommit: {
    commit: ({ repositoryId, rest: { commit, pull } }) => {
      if (commit === undefined) return commitNode(repositoryId, objectOf(objectOf(pull).head).sha);
      const { sha } = objectOf(commit);
      return { kind: "Commit", repositoryId, rest: { ...objectOf(commit), oid: sha ?? null } };
    },
    url: pageInPull,
    resourcePath: (node) => pathnameOf(pageInPull(node)),
    pullRequest: ({ repositoryId, rest: { pull } }) => ({
      kind: "PullRequest",
      repositoryId,
      rest: objectOf(pull),
    }),
  },
  PullRequestChangedFile: {
    path: rest("filename"),
    additions: rest("additions"),
    deletions: rest("deletions"),
    changeType: ({ rest: { status } }, _args, call) => {
      if (status === "unchanged") call.lacks();
      return CHANGES.get(String(status)) ?? enumValue(status);
    },
  },
};
