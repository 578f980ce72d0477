import { patchOf } from "../world/files.ts";
import type { Repository } from "../world/records.ts";
import type { FileChange } from "../world/records-code.ts";
import { type Json, repositoryPage, repositoryUrl, type View } from "./view.ts";

/** Seen: an answer carries about a megabyte of patches, and leaves out the rest of them. */
const PATCHES = 1_000_000;

/** diff-entry, each. */
export function fileViews(view: View, repository: Repository, sha: string, files: readonly FileChange[]): Json[] {
  let left = PATCHES;
  return files.map((file) => {
    const patch = patchOf(file);
    const fits = patch !== undefined && patch.length <= left;
    if (fits) left -= patch.length;
    return { ...fileView(view, repository, sha, file), ...(fits ? { patch } : {}) };
  });
}

function fileView(view: View, repository: Repository, sha: string, file: FileChange): Json {
  const page = repositoryPage(view, repository);
  const path = file.filename.split("/").map(encodeURIComponent).join("/");
  return {
    sha: file.sha,
    filename: file.filename,
    status: file.status,
    additions: file.additions,
    deletions: file.deletions,
    changes: file.additions + file.deletions,
    blob_url: `${page}/blob/${sha}/${path}`,
    raw_url: `${page}/raw/${sha}/${path}`,
    contents_url: `${repositoryUrl(view, repository)}/contents/${path}?ref=${sha}`,
    ...(file.previousFilename === null ? {} : { previous_filename: file.previousFilename }),
  };
}
