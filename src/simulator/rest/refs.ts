/** Branches, tags and refs. */
import { pushBranch } from "../changes/pulls.ts";
import { createTags, deleteBranch, deleteTag, moveBranch, moveTag } from "../changes/refs.ts";
import { commitView, signature } from "../views/commit.ts";
import { repositoryPage, repositoryUrl } from "../views/view.ts";
import { commitOf } from "../world/commits.ts";
import type { Tag } from "../world/records-code.ts";
import { invalid, Refusal } from "../world/refusal.ts";
import { isPull } from "../world/world.ts";
import { flag, required, text } from "./body.ts";
import { type Answer, contributor, created, NO_CONTENT, needPush, notFound, ok, type RepositoryCall } from "./call.ts";
import { needCommits } from "./commits.ts";
import { paged } from "./pagination.ts";

/**
 * Alphabetical. No branch of this world is protected. All words but two count as true (brekkylab/backlot, measured
 * 2026-09-03).
 */
export function listBranches(call: RepositoryCall): Answer {
  const { repository, query } = call;
  const asked = query.get("protected");
  const areProtected = asked && !["false", "0"].includes(asked.toLowerCase());
  const rows = areProtected ? [] : [...repository.branches].sort(([a], [b]) => (a < b ? -1 : 1));
  const url = repositoryUrl(call.view, repository);
  return paged(call, { rows, size: rows.length }, ([name, sha]) => ({
    name,
    commit: { sha, url: `${url}/commits/${sha}` },
    protected: false,
  }));
}

export function getBranch(call: RepositoryCall): Answer {
  const { repository, world, view } = call;
  const name = call.params.branch ?? "";
  const sha = repository.branches.get(name);
  const commit = sha === undefined ? undefined : commitOf(world, repository, sha);
  if (!commit) throw new Refusal(404, "Branch not found");
  const self = `${repositoryUrl(view, repository)}/branches/${name}`;
  return ok({
    name,
    commit: commitView(view, repository, commit),
    _links: { self, html: `${repositoryPage(view, repository)}/tree/${name}` },
    protected: false,
    protection: { enabled: false, required_status_checks: { enforcement_level: "off", contexts: [], checks: [] } },
    protection_url: `${self}/protection`,
  });
}

/** Newest name first is not promised: the order is by name, backwards. */
export function listTags(call: RepositoryCall): Answer {
  const { repository, world, view } = call;
  const rows = [...world.code.of(repository).tags.values()].sort((a, b) => (a.name < b.name ? 1 : -1));
  const url = repositoryUrl(view, repository);
  return paged(call, { rows, size: rows.length }, (tag) => ({
    name: tag.name,
    zipball_url: `${url}/zipball/refs/tags/${tag.name}`,
    tarball_url: `${url}/tarball/refs/tags/${tag.name}`,
    commit: { sha: tag.sha, url: `${url}/commits/${tag.sha}` },
    node_id: refNodeId(call, `refs/tags/${tag.name}`),
  }));
}

export function getTagObject(call: RepositoryCall): Answer {
  const { repository, world, view } = call;
  const tag = [...world.code.of(repository).tags.values()].find(({ object }) => object?.sha === call.params.sha);
  if (!tag?.object) throw notFound();
  const url = repositoryUrl(view, repository);
  const { sha, message, taggerId, at } = tag.object;
  return ok({
    node_id: refNodeId(call, `tag ${sha}`),
    sha,
    url: `${url}/git/tags/${sha}`,
    tagger: signature(view, taggerId, at),
    object: { sha: tag.sha, type: "commit", url: `${url}/git/commits/${tag.sha}` },
    tag: tag.name,
    message,
    verification: { verified: false, reason: "unsigned", signature: null, payload: null, verified_at: null },
  });
}

export function getRef(call: RepositoryCall): Answer {
  needCommits(call.repository);
  const found = allRefs(call).find(({ ref }) => ref === `refs/${call.params.ref}`);
  if (!found) throw notFound();
  return ok(refView(call, found));
}

/** Everything that begins so, in one answer: neither `page` nor `per_page` counts. */
export function listMatchingRefs(call: RepositoryCall): Answer {
  needCommits(call.repository);
  const found = allRefs(call).filter(({ ref }) => ref.startsWith(`refs/${call.params.ref ?? ""}`));
  return ok(found.map((one) => refView(call, one)));
}

interface Ref {
  readonly ref: string;
  readonly sha: string;
  readonly type: "commit" | "tag";
}

function allRefs({ repository, world }: RepositoryCall): Ref[] {
  const found: Ref[] = [];
  for (const [name, sha] of repository.branches) found.push({ ref: `refs/heads/${name}`, sha, type: "commit" });
  for (const { name, sha, object } of world.code.of(repository).tags.values())
    found.push({ ref: `refs/tags/${name}`, sha: object?.sha ?? sha, type: object ? "tag" : "commit" });
  for (const row of repository.rows.pullsByCreated.ascending())
    if (isPull(row)) found.push({ ref: `refs/pull/${row.number}/head`, sha: row.pull.head.sha, type: "commit" });
  return found.sort((a, b) => (a.ref < b.ref ? -1 : 1));
}

function refView(call: RepositoryCall, { ref, sha, type }: Ref) {
  const base = `${repositoryUrl(call.view, call.repository)}/git`;
  return {
    ref,
    node_id: refNodeId(call, ref),
    url: `${base}/${ref}`,
    object: { sha, type, url: `${base}/${type}s/${sha}` },
  };
}

function refNodeId({ repository }: RepositoryCall, ref: string): string {
  return Buffer.from(`03:Ref${repository.id}:${ref}`).toString("base64");
}

export function postRef(call: RepositoryCall): Answer {
  contributor(call);
  const by = needPush(call);
  const { repository, world } = call;
  needCommits(repository);
  const ref = required(text(call.body, "ref"), "ref");
  const sha = required(text(call.body, "sha"), "sha");
  const [, kind, name] = /^refs\/(heads|tags)\/(.+)$/.exec(ref) ?? [];
  if (name === undefined)
    throw new Refusal(422, "Reference name must start with 'refs/' and contain at least two slashes.");
  if (!/^[0-9a-f]{40}$/.test(sha)) throw invalid({ resource: "Reference", field: "sha", code: "invalid" });
  if (kind === "tags") createTags(world, by, repository, [{ name, sha }]);
  else {
    if (repository.branches.has(name)) throw new Refusal(422, "Reference already exists");
    pushBranch(world, by, repository, name, sha);
  }
  return created(refView(call, { ref, sha, type: "commit" }));
}

export function patchRef(call: RepositoryCall): Answer {
  const by = needPush(call);
  const sha = required(text(call.body, "sha"), "sha");
  const { repository, world } = call;
  const { branch, tag } = named(call);
  if (tag) moveTag(world, by, repository, tag, sha);
  else moveBranch(world, by, repository, branch, { sha, force: flag(call.body, "force") ?? false });
  return ok(refView(call, { ref: `refs/${call.params.ref}`, sha, type: "commit" }));
}

export function deleteRef(call: RepositoryCall): Answer {
  const by = needPush(call);
  const { branch, tag } = named(call);
  if (tag) deleteTag(call.world, by, call.repository, tag);
  else deleteBranch(call.world, by, call.repository, branch);
  return NO_CONTENT;
}

function named({ params, repository, world }: RepositoryCall): { readonly branch: string; readonly tag?: Tag } {
  const [, kind, name = ""] = /^(heads|tags)\/(.+)$/.exec(params.ref ?? "") ?? [];
  const tag = kind === "tags" ? world.code.of(repository).tags.get(name) : undefined;
  if (tag) return { branch: name, tag };
  if (kind !== "heads" || !repository.branches.has(name)) throw new Refusal(422, "Reference does not exist");
  return { branch: name };
}
