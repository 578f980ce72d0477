import type { Installation } from "../../src/simulator/world/apps.ts";
import type { Permissions } from "../../src/simulator/world/permissions.ts";
import type { Comment, Issue, PullIssue, Repository, User, Visibility } from "../../src/simulator/world/records.ts";
import type { TokenInput } from "../../src/simulator/world/tokens.ts";
import { openSimulated, type Simulated } from "./simulated.ts";

/** A repository with issue 1 and pull request 2, a comment on each, a label and a milestone. */
export interface Place {
  readonly repository: Repository;
  readonly issue: Issue;
  readonly pull: PullIssue;
  readonly onIssue: Comment;
  readonly onPull: Comment;
  /** The ids of the issue, the pull request, the comments, a review, the label and the milestone, in this order. */
  readonly nodeIds: readonly string[];
}

export interface AccessWorld extends Simulated {
  /** The organization `acme`, which `octo` belongs to. It owns `open`, `closed` (private) and `inner` (internal). */
  readonly acme: User;
  readonly places: Readonly<Record<PlaceName, Place>>;
  /** Makes a token by the control interface. */
  token(input: Partial<TokenInput>): Promise<string>;
  /** The token of an App that is installed on `acme` with these permissions, for all repositories or those named. */
  installed(permissions: Permissions, repositories?: readonly string[]): string;
  /** The token of a user for an App that is installed so. */
  ofUser(login: string, permissions: Permissions, repositories?: readonly string[]): Promise<string>;
  graphql(token: string, query: string, variables?: object): Promise<GraphqlReply>;
}

interface GraphqlReply {
  // biome-ignore lint/suspicious/noExplicitAny: answers are foreign JSON, and tests look into them as clients do.
  readonly data?: any;
  readonly errors?: readonly {
    readonly type?: string;
    readonly path?: readonly (string | number)[];
    readonly message: string;
    readonly extensions?: object;
  }[];
}

export const PLACES = ["acme/open", "acme/closed", "acme/inner", "eve/open", "eve/closed"] as const;
export type PlaceName = (typeof PLACES)[number];

export async function openAccessWorld(): Promise<AccessWorld> {
  // The test asks about five places more often than a caller without a token may in an hour.
  const it = await openSimulated({ quota: { limits: { coreAnonymous: 1_000 } } });
  const { world, apps, tokens } = it.simulator;
  const acme = world.addUser({ login: "acme", type: "Organization" });
  acme.memberIds = [it.owner.id];
  const eve = world.addUser({ login: "eve" });
  const place = (owner: User, name: string, visibility: Visibility) => furnished(it, owner, name, visibility);
  let slugs = 0;
  const install = (permissions: Permissions, repositories?: readonly string[]): Installation => {
    slugs += 1;
    const installations = [{ account: "acme", ...(repositories ? { repositories } : {}) }];
    const [installation] = apps.of(apps.create({ slug: `app-${slugs}`, permissions, installations }).app);
    if (!installation) throw new Error("The App is not installed");
    return installation;
  };
  const made = async (input: Partial<TokenInput>): Promise<string> => {
    const reply = await it.control("POST", "/-/tokens", { login: "octo", ...input });
    if (reply.status !== 200) throw new Error(reply.text);
    return reply.body.token;
  };
  return {
    ...it,
    acme,
    places: {
      "acme/open": place(acme, "open", "public"),
      "acme/closed": place(acme, "closed", "private"),
      "acme/inner": place(acme, "inner", "internal"),
      "eve/open": place(eve, "open", "public"),
      "eve/closed": place(eve, "closed", "private"),
    },
    token: made,
    installed(permissions, repositories) {
      const installation = install(permissions, repositories);
      const grant = { installation, repositoryIds: null, permissions: installation.permissions, bonus: () => 0 };
      return tokens.mint(grant, false).value;
    },
    ofUser: (login, permissions, repositories) =>
      made({ kind: "app-user", login, app: install(permissions, repositories).app.id }),
    async graphql(token, query, variables = {}) {
      return (await it.ask("POST", "/graphql", { token, body: { query, variables } })).body;
    },
  };
}

function furnished(it: Simulated, owner: User, name: string, visibility: Visibility): Place {
  const { world } = it.simulator;
  const repository = world.addRepository({ ownerId: owner.id, name, visibility });
  const { id: authorId } = it.owner;
  const label = world.addLabel({ repository, name: "bug" });
  const milestone = world.addMilestone({ repository, title: "1.0" });
  const marks = { authorId, labelIds: [label.id], milestoneId: milestone.id };
  const end = (ref: string) => ({
    ref,
    sha: world.newSha(),
    label: `${owner.login}:${ref}`,
    userId: owner.id,
    repositoryId: repository.id,
  });
  const issue = world.addIssue({ repository, title: "An issue", ...marks });
  const pull = world.addIssue({
    repository,
    title: "A pull request",
    ...marks,
    pull: { head: end("topic"), base: end("main") },
  });
  const onIssue = world.addComment({ issue, authorId, body: "On the issue" });
  const onPull = world.addComment({ issue: pull, authorId, body: "On the pull request" });
  const review = world.addReview({ issue: pull, authorId, state: "APPROVED" });
  const nodeIds = [
    world.nodeId("Issue", issue, repository.id),
    world.nodeId("PullRequest", { id: pull.pull.id, createdAt: pull.createdAt }, repository.id),
    world.nodeId("IssueComment", onIssue, repository.id),
    world.nodeId("IssueComment", onPull, repository.id),
    world.nodeId("PullRequestReview", review, repository.id),
    world.nodeId("Label", label, repository.id),
    world.nodeId("Milestone", milestone, repository.id),
  ];
  return { repository, issue, pull, onIssue, onPull, nodeIds };
}
