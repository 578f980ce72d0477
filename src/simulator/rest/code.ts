/**
 * What files hold. The simulated world has no texts: every commit has one file, which names the commit and the
 * repository.
 */
import { createHash } from "node:crypto";
import { NO_SHA, shaNamed } from "../world/commits.ts";
import { type Answer, notFound, ok, type RepositoryCall } from "./call.ts";

const SHA = /^[0-9a-f]{40}$/;

/** Every sha but the null sha is that of a file's text. */
function blobNamed(sha: string): string {
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
  const sha = blobNamed(call.params.sha ?? "");
  const content = Buffer.from(textAt(call, sha)).toString("base64");
  return ok({ sha, url: `${addressOf(call)}/git/blobs/${sha}`, content, encoding: "base64" });
}

export function getTree(call: RepositoryCall): Answer {
  const { world, repository, params } = call;
  const sha = shaNamed(world, repository, params.sha ?? "") ?? blobNamed(params.sha ?? "");
  const file = shaOf(textAt(call, sha));
  const url = `${addressOf(call)}/git/blobs/${file}`;
  const tree = [{ path: "README.md", mode: "100644", type: "blob", sha: file, url }];
  return ok({ sha, url: `${addressOf(call)}/git/trees/${sha}`, tree, truncated: false });
}

/** GitHub's tag is the file's sha, whatever the media type; the address of a private file holds a key of its reader. */
export function getContents(call: RepositoryCall): Answer {
  const { repository, token, query } = call;
  const path = call.params.path ?? "";
  if (path !== "README.md") throw notFound();
  const at = shaNamed(call.world, repository, query.get("ref") ?? repository.defaultBranch);
  if (at === undefined) throw notFound();
  const text = textAt(call, at);
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
  const full = call.world.fullName(repository);
  const url = `${addressOf(call)}/contents/${path}?ref=${query.get("ref") ?? repository.defaultBranch}`;
  const [git, html] = [`${addressOf(call)}/git/blobs/${sha}`, `${call.view.htmlUrl}/${full}/blob/${at}/${path}`];
  const addresses = {
    url,
    html_url: html,
    git_url: git,
    download_url: `https://raw.githubusercontent.com/${full}/${sha}/README.md${key}`,
  };
  const size = Buffer.byteLength(text);
  const content = { content: Buffer.from(text).toString("base64"), encoding: "base64" };
  const file = {
    name: path,
    path,
    sha,
    size,
    ...addresses,
    type: "file",
    ...content,
    _links: { self: url, git, html },
  };
  return ok(file, { tag: sha });
}
