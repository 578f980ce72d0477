import { type Fields, parseStored } from "../../json.ts";
import { findRepositoryDocument } from "../../mirror/read/repositories.ts";
import { findUserRepositories, type Relation, type RepositorySort } from "../../mirror/read/repository-lists.ts";
import { findUser } from "../../mirror/read/users.ts";
import { type Answer, type Call, ok, type RepositoryCall } from "../call.ts";
import { learnPublicRights, requireUser } from "../callers/permissions.ts";
import { ApiFault, notFound } from "../dialect/fault.ts";
import { choice, directionParameter, moment } from "../dialect/protocol.ts";
import { showOne } from "../view.ts";
import { fetchAndStoreWhole, showToAll } from "./accounts.ts";
import { askedPage, repositoryPage } from "./page.ts";

export async function getViewer(call: Call): Promise<Answer> {
  const { by, userId } = requireUser(call);
  if (by.of === "upstream") {
    // Upstream shows people more of themselves than of others, so others never get this answer.
    if (by.known.profile === null) throw new ApiFault(403, "Resource not accessible by integration");
    return ok(by.known.profile.replaceAll(`${call.ctx.config.upstreamUrl}/`, `${call.api}/`));
  }
  const known = await findUser(call.ctx.db, userId);
  if (!known) throw notFound();
  const { account, notFresh } = await fetchAndStoreWhole(call, known, "user").then(
    (account) => ({ account, notFresh: {} }),
    (error: unknown) => {
      // Their identity is known anyway, and most callers ask for no more.
      if (!(error instanceof ApiFault)) throw error;
      return { account: known, notFresh: { notFresh: error.message } };
    },
  );
  const { updatedAt, seenAt } = account;
  return ok(await showToAll(call, account), { lastModified: updatedAt, confirmedAt: seenAt, ...notFresh });
}

const RELATIONS = ["owner", "collaborator", "organization_member"] as const;

export async function listViewerRepositories(call: Call): Promise<Answer> {
  const { userId } = requireUser(call);
  const { query } = call;
  if (query.has("type") && (query.has("visibility") || query.has("affiliation"))) {
    throw new ApiFault(422, "If you specify visibility or affiliation, you cannot specify type.");
  }
  const type = choice(query, "type", "Repository", ["all", "owner", "public", "private", "member"]);
  const visibility =
    type === "public" || type === "private"
      ? type
      : choice(query, "visibility", "Repository", ["all", "public", "private"]);
  const sort: RepositorySort = choice(query, "sort", "Repository", ["full_name", "created", "updated", "pushed"]);
  const page = askedPage(query);
  const { rows, total } = await findUserRepositories(
    call.ctx.db,
    userId,
    call.sight,
    {
      visibility,
      relations:
        type === "owner"
          ? ["owner"]
          : type === "member"
            ? ["collaborator", "organization_member"]
            : affiliations(query),
      updatedAfter: moment(query, "since", "Repository"),
      updatedBefore: moment(query, "before", "Repository"),
    },
    { sort, direction: directionParameter(query, "Repository") ?? (sort === "full_name" ? "asc" : "desc"), ...page },
  );
  return repositoryPage(call, rows, total);
}

function affiliations(query: URLSearchParams): readonly Relation[] {
  const text = query.get("affiliation");
  if (!text) return RELATIONS;
  const asked = text.split(",").map((part) => part.trim());
  return RELATIONS.filter((relation) => asked.includes(relation));
}

export async function getRepository(call: RepositoryCall): Promise<Answer> {
  const found = await findRepositoryDocument(call.ctx.db, call.repository.id);
  if (!found) throw notFound();
  const { id, document, detail, updatedAt } = found;
  await learnPublicRights(call, [found]);
  return ok(await showOne(call, { repositoryId: id, document, detail }), { lastModified: updatedAt });
}

export async function getTopics(call: RepositoryCall): Promise<Answer> {
  const found = await findRepositoryDocument(call.ctx.db, call.repository.id);
  if (!found) throw notFound();
  const { topics } = parseStored<Fields>(found.document);
  return ok(JSON.stringify({ names: topics ?? [] }));
}
