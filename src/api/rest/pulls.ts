import { findPull, findPulls, type PullRow } from "../../mirror/find-pulls.ts";
import { type Answer, ok, type RepositoryCall } from "../call.ts";
import { notFound } from "../fault.ts";
import { choice, direction } from "../query.ts";
import { showOne } from "../view.ts";
import { askedPage, numberedPage, smallNumberParam } from "./page.ts";

export async function listPulls(call: RepositoryCall): Promise<Answer> {
  const { query, ctx, repository } = call;
  const sort = choice(query, "sort", "PullRequest", ["created", "updated", "popularity", "long-running"]);
  const head = query.get("head");
  const { rows, total } = await findPulls(
    ctx.db,
    repository.id,
    {
      state: choice(query, "state", "PullRequest", ["open", "closed", "all"]),
      base: query.get("base") || undefined,
      // Without a user in front the service does not filter.
      head: head?.includes(":") ? head : undefined,
    },
    {
      sort,
      direction: direction(query, "PullRequest") ?? (sort === "created" ? "desc" : "asc"),
      now: ctx.clock.now(),
      ...askedPage(query),
    },
  );
  return numberedPage(
    call,
    rows.map(({ document, body }) => ({ repositoryId: repository.id, document, body })),
    total,
  );
}

export async function getPull(call: RepositoryCall): Promise<Answer> {
  const { document, detail, body, updatedAt } = await requirePull(call);
  return ok(await showOne(call, { repositoryId: call.repository.id, document, detail, body }), {
    lastModified: updatedAt,
  });
}

/** @throws ApiFault 404 */
export async function requirePull({ ctx, repository, params }: RepositoryCall): Promise<PullRow> {
  const number = smallNumberParam(params.number);
  const pull = number === null ? null : await findPull(ctx.db, repository.id, number);
  if (!pull) throw notFound();
  return pull;
}
