import { type Fields, objectOf, parseStored, textOf } from "../../json.ts";
import { findRepositoryDocument } from "../../mirror/read/repositories.ts";
import { findUserRepositories, type Relation } from "../../mirror/read/repository-lists.ts";
import { findUser } from "../../mirror/read/users.ts";
import { type Answer, type Call, ok, type RepositoryCall } from "../call/call.ts";
import { showOne } from "../call/view.ts";
import { learnPublicRights, requireUser } from "../callers/permissions.ts";
import { ApiFault, notFound } from "../dialect/fault.ts";
import { withNextIds } from "../dialect/node-id.ts";
import { choice, moment } from "../dialect/protocol.ts";
import { fetchAndStoreWhole, repositoryOrder, showToAll } from "./accounts.ts";
import { askedPage, pageDb, repositoryPage } from "./page.ts";

export async function getViewer(call: Call): Promise<Answer> {
  const { by, userId } = requireUser(call);
  if (by.of === "upstream") {
    // Upstream shows people more of themselves than of others, so others never get this answer.
    const { profile } = by.known;
    if (profile === null) throw new ApiFault(403, "Resource not accessible by integration");
    const updatedAt = textOf(objectOf(JSON.parse(profile)).updated_at);
    const lastModified = updatedAt === null ? null : new Date(updatedAt);
    const shown = profile.replaceAll(`${call.ctx.config.upstreamUrl}/`, `${call.api}/`);
    return ok(call.hasNextIds ? withNextIds(shown, 0) : shown, { lastModified });
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
  const type = choice(query, "type", ["all", "owner", "public", "private", "member"]);
  const visibility =
    type === "public" || type === "private" ? type : choice(query, "visibility", ["all", "public", "private"]);
  const page = askedPage(query);
  const { rows, total } = await findUserRepositories(
    pageDb(call),
    userId,
    call.access,
    {
      visibility,
      relations:
        type === "owner"
          ? ["owner"]
          : type === "member"
            ? ["collaborator", "organization_member"]
            : affiliations(query),
      updatedAfter: moment(query, "since"),
      updatedBefore: moment(query, "before"),
    },
    { ...repositoryOrder(query, { sort: "full_name", direction: "asc" }, "desc"), ...page },
  );
  return repositoryPage(call, rows, total);
}

function affiliations(query: URLSearchParams): readonly Relation[] {
  const text = query.get("affiliation");
  if (!text) return RELATIONS;
  const asked = text.split(",").map((part) => part.trim());
  const known = RELATIONS.filter((relation) => asked.includes(relation));
  return known.length > 0 ? known : RELATIONS;
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
