import { type AcrossFilter, findIssuesAcross } from "../../mirror/read/issues-across.ts";
import { findUser } from "../../mirror/read/users.ts";
import { type Answer, type Call, ok } from "../call/call.ts";
import { showEach } from "../call/view.ts";
import { requireUser } from "../callers/permissions.ts";
import { notFound, unmirrored } from "../dialect/fault.ts";
import { numberedLink } from "../dialect/paging.ts";
import { choice, issueState, moment } from "../dialect/protocol.ts";
import { requireOrganization } from "./accounts.ts";
import { askedLabels, askedOrder, askedType } from "./issues.ts";
import { askedPage } from "./page.ts";

/** Issues of all repositories that the caller sees. */
export async function listIssuesAcross(call: Call): Promise<Answer> {
  const { query } = call;
  const { userId } = requireUser(call);
  const is = (name: string) => query.get(name) === "true";
  return issuesPage(call, {
    ...(is("owned")
      ? { ownedBy: { id: userId, is: true } }
      : is("collab")
        ? { ownedBy: { id: userId, is: false } }
        : {}),
    ...(is("orgs") ? { isOrganizations: true } : {}),
    // The parameter is named for what it adds in GitHub's OpenAPI. But answers without it were seen to have pull
    // requests too.
    hasPulls: query.get("pulls") !== "false",
  });
}

/** GitHub docs: "across owned and member repositories", so none that an organisation owns. */
export async function listOwnIssues(call: Call): Promise<Answer> {
  requireUser(call);
  return issuesPage(call, { isOrganizations: false, hasPulls: true });
}

export async function listOrganizationIssues(call: Call): Promise<Answer> {
  requireUser(call);
  const organization = await requireOrganization(call);
  return issuesPage(
    { ...call, path: `/organizations/${organization.id}/issues` },
    { ownerId: organization.id, hasPulls: true, type: askedType(call.query) },
  );
}

type AcrossScope = Pick<AcrossFilter, "ownerId" | "ownedBy" | "isOrganizations" | "hasPulls" | "type">;

async function issuesPage(call: Call, part: AcrossScope): Promise<Answer> {
  const { query } = call;
  const order = askedOrder(query);
  const filter: AcrossFilter = {
    ...part,
    ...(await taking(call)),
    state: issueState(query),
    since: moment(query, "since") ?? undefined,
    labels: askedLabels(query),
  };
  const asked = askedPage(query);
  const { rows, total } = await findIssuesAcross(call.searchDb, call.access, filter, order, asked);
  const homes = new Map(rows.map(({ repositoryId, repository }) => [repositoryId, repository.document]));
  const documents = rows.map(({ repositoryId, document, body }) => ({ repositoryId, document, body }));
  const homeDocuments = [...homes].map(([repositoryId, document]) => ({ repositoryId, document }));
  const [issues, repositories] = await Promise.all([showEach(call, documents), showEach(call, homeDocuments)]);
  const shown = new Map([...homes.keys()].map((id, index) => [id, repositories[index]]));
  const texts = rows.flatMap(({ repositoryId }, index) => {
    const [issue, repository] = [issues[index], shown.get(repositoryId)];
    if (issue == null || repository == null) return [];
    return [`${issue.slice(0, issue.lastIndexOf("}"))},"repository":${repository}}`];
  });
  const link = numberedLink(call.api + call.path, query, { page: asked.page, last: Math.ceil(total / asked.limit) });
  return ok(`[${texts.join(",")}]`, { link });
}

/** The relation that the caller must have to the issues. */
async function taking(call: Call): Promise<Partial<AcrossFilter>> {
  const { query, ctx } = call;
  const filter = choice(query, "filter", ["assigned", "created", "mentioned", "subscribed", "repos", "all"]);
  if (filter === "repos" || filter === "all") return {};
  if (filter === "subscribed") {
    const message = "Subscriptions are not mirrored";
    throw unmirrored({ value: filter, resource: "Issue", field: "filter", code: "custom", message });
  }
  const user = await findUser(ctx.db, requireUser(call).userId);
  if (!user) throw notFound();
  switch (filter) {
    case "assigned":
      return { assignee: { login: user.login } };
    case "created":
      return { creator: user.login };
    case "mentioned":
      return { mentioned: user.login };
    default:
      return filter satisfies never;
  }
}
