/** What hangs on commits. The simulated world has no files: every commit has one, which names the commit and the repository. */
import { createHash } from "node:crypto";
import { type Answer, notFound, ok, type RepositoryCall } from "./call.ts";

const SHA = /^[0-9a-f]{40}$/;
const NO_SHA = "0".repeat(40);

/** The commit that a branch or a sha names. Every sha is one, but for the null sha. */
function commitNamed({ repository }: RepositoryCall, ref: string): string {
  const sha = repository.branches.get(ref.replace(/^refs\/heads\//, "")) ?? ref;
  if (!SHA.test(sha) || sha === NO_SHA) throw notFound();
  return sha;
}

function addressOf({ view, world, repository }: RepositoryCall): string {
  return `${view.apiUrl}/repos/${world.fullName(repository)}`;
}

function textAt({ repository }: RepositoryCall, sha: string): string {
  return `The file of ${repository.id} (${repository.description}) at ${sha}.\n`;
}

function shaOf(text: string): string {
  return createHash("sha1")
    .update(`blob ${Buffer.byteLength(text)}\0${text}`)
    .digest("hex");
}

export function getBlob(call: RepositoryCall): Answer {
  const sha = commitNamed(call, call.params.sha ?? "");
  const content = Buffer.from(textAt(call, sha)).toString("base64");
  return ok({ sha, url: `${addressOf(call)}/git/blobs/${sha}`, content, encoding: "base64" });
}

export function getTree(call: RepositoryCall): Answer {
  const sha = commitNamed(call, call.params.sha ?? "");
  const file = shaOf(textAt(call, sha));
  const url = `${addressOf(call)}/git/blobs/${file}`;
  const tree = [{ path: "README.md", mode: "100644", type: "blob", sha: file, url }];
  return ok({ sha, url: `${addressOf(call)}/git/trees/${sha}`, tree, truncated: false });
}

function commitView(call: RepositoryCall, sha: string) {
  const message = `Change ${call.repository.description} at ${sha.slice(0, 7)}`;
  return { sha, url: `${addressOf(call)}/commits/${sha}`, commit: { message, comment_count: 0 }, parents: [] };
}

export function getGitCommit(call: RepositoryCall): Answer {
  const sha = commitNamed(call, call.params.sha ?? "");
  const { commit } = commitView(call, sha);
  return ok({ sha, url: `${addressOf(call)}/git/commits/${sha}`, message: commit.message });
}

/** `/commits/{ref}`, whose branch may have slashes, and what hangs on it. */
export function getCommit(call: RepositoryCall): Answer {
  const [, ref = "", below = ""] = /^(.*?)(?:\/(status|check-runs))?$/.exec(call.params.ref ?? "") ?? [];
  const sha = commitNamed(call, ref);
  const url = `${addressOf(call)}/commits/${sha}`;
  if (below === "status") return ok({ state: "success", sha, total_count: 0, statuses: [], url: `${url}/status` });
  if (below === "check-runs") return ok({ total_count: 0, check_runs: [] });
  const accept = [call.headers.accept ?? ""].flat().join();
  if (accept.includes(".sha"))
    return { status: 200, text: { type: "application/vnd.github.sha; charset=utf-8", content: sha } };
  return ok(commitView(call, sha));
}

export function compareCommits(call: RepositoryCall): Answer {
  const [base = "", head = ""] = (call.params.basehead ?? "").split(/\.\.\.?/);
  const [from, to] = [commitNamed(call, base), commitNamed(call, head)];
  const commits = from === to ? [] : [commitView(call, to)];
  const url = `${addressOf(call)}/compare/${base}...${head}`;
  return ok({ url, status: from === to ? "identical" : "ahead", total_commits: commits.length, commits, files: [] });
}

/** GitHub's tag is the file's sha, whatever the media type; the address of a private file holds a key of its reader. */
export function getContents(call: RepositoryCall): Answer {
  const { repository, token, query } = call;
  const path = call.params.path ?? "";
  if (path !== "README.md") throw notFound();
  const text = textAt(call, commitNamed(call, query.get("ref") ?? repository.defaultBranch));
  const sha = shaOf(text);
  const accept = [call.headers.accept ?? ""].flat().join();
  if (/\.raw\b/.test(accept))
    return { status: 200, text: { type: "application/vnd.github.raw; charset=utf-8", content: text }, tag: sha };
  const key =
    repository.visibility === "public"
      ? ""
      : `?token=${shaOf(token?.value ?? "")
          .slice(0, 12)
          .toUpperCase()}`;
  const content = Buffer.from(text).toString("base64");
  const raw = `https://raw.githubusercontent.com/${call.world.fullName(repository)}/${sha}/README.md${key}`;
  return ok(
    { name: path, path, sha, url: `${addressOf(call)}/contents/${path}`, download_url: raw, content },
    { tag: sha },
  );
}

/** What the token's own account may do. */
export function getPermission(call: RepositoryCall): Answer {
  const user = call.world.userByLogin(call.params.login ?? "");
  if (!user || !call.token) throw notFound();
  return ok({ permission: call.role === "admin" ? "admin" : "read", user: { login: user.login, id: user.id } });
}
