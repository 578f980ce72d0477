/** Commit statuses: said by anybody who may push, never changed. */
import { createStatus, latestStatuses } from "../changes/checks.ts";
import { combinedView, statusView } from "../views/check.ts";
import { repositoryUrl } from "../views/view.ts";
import { commitOf } from "../world/commits.ts";
import { type CommitStatus, STATUS_STATES } from "../world/records-code.ts";
import { oneOf, required, text, textOrNull } from "./body.ts";
import { type Answer, needPush, type RepositoryCall } from "./call.ts";
import { commitNamed, noCommit } from "./commits.ts";
import { paged } from "./pagination.ts";

/** Newest first. */
export function listStatuses(call: RepositoryCall): Answer {
  const rows = statusesAt(call, commitNamed(call, call.params.ref ?? "").sha).toReversed();
  return paged(call, { rows, size: rows.length }, (row) => statusView(call.view, row));
}

/** The latest of each context, oldest first: pages are of them. */
export function getCombined(call: RepositoryCall): Answer {
  const { sha } = commitNamed(call, call.params.ref ?? "");
  const all = statusesAt(call, sha);
  const rows = latestStatuses(all);
  const shown: CommitStatus[] = [];
  const answer = paged(call, { rows, size: rows.length }, (row) => shown.push(row));
  return { ...answer, body: combinedView(call.view, call.repository, sha, all, shown) };
}

function statusesAt({ world, repository }: RepositoryCall, sha: string): readonly CommitStatus[] {
  return (world.code.of(repository).statuses.get(sha) ?? []).flatMap((row) => world.lag.seen(row) ?? []);
}

/** Anybody who may push says it, or an App that may write statuses. `Location` is the list. */
export function postStatus(call: RepositoryCall): Answer {
  const by = needPush(call);
  const { body, world, repository, view } = call;
  const sha = call.params.sha ?? "";
  if (!commitOf(world, repository, sha)) throw noCommit(sha);
  const context = text(body, "context");
  const description = textOrNull(body, "description");
  const targetUrl = textOrNull(body, "target_url");
  const status = createStatus(world, by, {
    repository,
    sha,
    state: required(oneOf(body, "state", STATUS_STATES), "state"),
    ...(context === undefined ? {} : { context }),
    ...(description === undefined ? {} : { description }),
    ...(targetUrl === undefined ? {} : { targetUrl }),
  });
  const location = `${repositoryUrl(view, repository)}/statuses/${sha}`;
  return { status: 201, body: statusView(view, status), headers: { Location: location } };
}
