import type { AddressInfo } from "node:net";
import { defineRelations } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import pg from "pg";
import { announce } from "../processes.ts";
import { issueAssignees, issueLabels, issues, labels, milestones, repositories, users } from "./express-schema.ts";

/** A page of issues as most people would write it: a relational query, objects made of its rows, `res.json`. */
const relations = defineRelations(
  { issues, issueLabels, issueAssignees, labels, milestones, repositories, users },
  (r) => ({
    issues: {
      user: r.one.users({ from: r.issues.userId, to: r.users.id }),
      closedBy: r.one.users({ from: r.issues.closedById, to: r.users.id }),
      milestone: r.one.milestones({
        from: [r.issues.repositoryId, r.issues.milestoneId],
        to: [r.milestones.repositoryId, r.milestones.id],
      }),
      labels: r.many.issueLabels({
        from: [r.issues.repositoryId, r.issues.number],
        to: [r.issueLabels.repositoryId, r.issueLabels.number],
      }),
      assignees: r.many.issueAssignees({
        from: [r.issues.repositoryId, r.issues.number],
        to: [r.issueAssignees.repositoryId, r.issueAssignees.number],
      }),
    },
    issueLabels: {
      label: r.one.labels({
        from: [r.issueLabels.repositoryId, r.issueLabels.labelId],
        to: [r.labels.repositoryId, r.labels.id],
      }),
    },
    issueAssignees: { user: r.one.users({ from: r.issueAssignees.userId, to: r.users.id }) },
    milestones: { creator: r.one.users({ from: r.milestones.creatorId, to: r.users.id }) },
  }),
);
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL as string, max: 10 });
const db = drizzle({ client: pool, relations });

// Columns that only a mirror has are left out.
const ofUser = { id: true, nodeId: true, login: true, type: true, avatarUrl: true, siteAdmin: true } as const;
const ofLabel = { id: true, nodeId: true, name: true, color: true, description: true, default: true } as const;
const ofMirror = { document: false, keyStamps: false, seenAt: false, seenByRead: false, revision: false } as const;

async function page(repositoryId: number, before: number) {
  const repository = await db.query.repositories.findFirst({
    where: { id: repositoryId },
    columns: { id: true, fullName: true, htmlUrl: true },
  });
  if (!repository) return [];
  const rows = await findIssues(repositoryId, before);
  const home = { api: `${API}/repos/${repository.fullName}`, page: repository.htmlUrl };
  return rows.map((row) => issueView(row, home));
}

const API = "https://mirror.example";
type Rows = Awaited<ReturnType<typeof findIssues>>;

function findIssues(repositoryId: number, before: number) {
  return db.query.issues.findMany({
    columns: { ...ofMirror, search: false },
    where: { repositoryId, number: { lt: before } },
    orderBy: { createdAt: "desc", number: "desc" },
    limit: 100,
    with: {
      user: { columns: ofUser },
      closedBy: { columns: ofUser },
      milestone: { columns: ofMirror, with: { creator: { columns: ofUser } } },
      labels: { with: { label: { columns: ofLabel } } },
      assignees: { with: { user: { columns: ofUser } } },
    },
  });
}

function issueView(row: Rows[number], { api, page }: { api: string; page: string | null }) {
  const url = `${api}/issues/${row.number}`;
  const assignees = row.assignees.map(({ user }) => userView(user));
  return {
    url,
    repository_url: api,
    labels_url: `${url}/labels{/name}`,
    comments_url: `${url}/comments`,
    events_url: `${url}/events`,
    html_url: `${page}/issues/${row.number}`,
    id: row.id,
    node_id: row.nodeId,
    number: row.number,
    title: row.title,
    user: userView(row.user),
    labels: row.labels.map(({ label }) => label && labelView(label, api)),
    state: row.state,
    locked: row.locked,
    assignee: assignees[0] ?? null,
    assignees,
    milestone: row.milestone && milestoneView(row.milestone, { api, page }),
    comments: row.comments,
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
    closed_at: row.closedAt?.toISOString() ?? null,
    author_association: row.authorAssociation,
    active_lock_reason: row.activeLockReason,
    body: row.body,
    closed_by: userView(row.closedBy),
    reactions: { url: `${url}/reactions`, total_count: 0 },
    timeline_url: `${url}/timeline`,
    performed_via_github_app: null,
    state_reason: row.stateReason,
  };
}

function userView(user: Rows[number]["user"]) {
  if (!user) return null;
  const url = `${API}/users/${user.login}`;
  return {
    login: user.login,
    id: user.id,
    node_id: user.nodeId,
    avatar_url: user.avatarUrl,
    gravatar_id: "",
    url,
    html_url: `https://github.com/${user.login}`,
    followers_url: `${url}/followers`,
    following_url: `${url}/following{/other_user}`,
    gists_url: `${url}/gists{/gist_id}`,
    starred_url: `${url}/starred{/owner}{/repo}`,
    subscriptions_url: `${url}/subscriptions`,
    organizations_url: `${url}/orgs`,
    repos_url: `${url}/repos`,
    events_url: `${url}/events{/privacy}`,
    received_events_url: `${url}/received_events`,
    type: user.type,
    user_view_type: "public",
    site_admin: user.siteAdmin,
  };
}

function labelView(label: NonNullable<Rows[number]["labels"][number]["label"]>, api: string) {
  return {
    id: label.id,
    node_id: label.nodeId,
    url: `${api}/labels/${encodeURIComponent(label.name)}`,
    name: label.name,
    color: label.color,
    default: label.default,
    description: label.description,
  };
}

function milestoneView(
  milestone: NonNullable<Rows[number]["milestone"]>,
  { api, page }: { api: string; page: string | null },
) {
  const url = `${api}/milestones/${milestone.number}`;
  return {
    url,
    html_url: `${page}/milestone/${milestone.number}`,
    labels_url: `${url}/labels`,
    id: milestone.id,
    node_id: milestone.nodeId,
    number: milestone.number,
    title: milestone.title,
    description: milestone.description,
    creator: userView(milestone.creator),
    open_issues: milestone.openIssues,
    closed_issues: milestone.closedIssues,
    state: milestone.state,
    created_at: milestone.createdAt?.toISOString() ?? null,
    updated_at: milestone.updatedAt?.toISOString() ?? null,
    due_on: milestone.dueOn?.toISOString() ?? null,
    closed_at: milestone.closedAt?.toISOString() ?? null,
  };
}

interface Express {
  get(
    path: string,
    answer: (
      request: { params: Record<string, string>; query: Record<string, string> },
      response: { json(body: unknown): void },
    ) => void,
  ): void;
  listen(port: number, host: string, done: () => void): { address(): AddressInfo | string | null };
}

const announceAt = (server: { address(): AddressInfo | string | null }) =>
  announce(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);

const name = "express";
const { default: express } = (await import(name)) as { default: () => Express };
const app = express();
app.get("/repositories/:id/issues", async (request, response) => {
  response.json(await page(Number(request.params.id), Number(request.query.before)));
});
const server = app.listen(0, "127.0.0.1", () => announceAt(server));
