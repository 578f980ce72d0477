import type { Repository, RepositoryRole } from "../world/records.ts";
import { simpleUser } from "./user.ts";
import { type Json, repositoryPage, repositoryUrl, time, timeOrNull, type View } from "./view.ts";

const LICENSES: Readonly<Record<string, { name: string; spdx: string; id: string }>> = {
  mit: { name: "MIT License", spdx: "MIT", id: "MDc6TGljZW5zZTEz" },
  "apache-2.0": { name: "Apache License 2.0", spdx: "Apache-2.0", id: "MDc6TGljZW5zZTI=" },
  "bsd-3-clause": { name: 'BSD 3-Clause "New" or "Revised" License', spdx: "BSD-3-Clause", id: "MDc6TGljZW5zZTU=" },
  "gpl-3.0": { name: "GNU General Public License v3.0", spdx: "GPL-3.0", id: "MDc6TGljZW5zZTk=" },
};

const RANK: readonly RepositoryRole[] = ["pull", "triage", "push", "maintain", "admin"];

function permissionsOf(role: RepositoryRole): Json {
  const rank = RANK.indexOf(role);
  return { admin: rank >= 4, maintain: rank >= 3, push: rank >= 2, triage: rank >= 1, pull: true };
}

/** minimal-repository, as in lists, in pull request ends and (without permissions) in webhooks. */
export function repositorySummary(view: View, repository: Repository): Json {
  const { world } = view;
  const url = repositoryUrl(view, repository);
  const page = repositoryPage(view, repository);
  const fullName = world.fullName(repository);
  const host = new URL(view.htmlUrl).host;
  const license = repository.licenseKey === null ? undefined : LICENSES[repository.licenseKey];
  const open = repository.openIssues + repository.openPulls;
  const role = view.roleOf(repository);
  const old = view.version === "2022-11-28";
  return {
    id: repository.id,
    node_id: world.nodeId("Repository", repository, undefined, view.nextIds),
    name: repository.name,
    full_name: fullName,
    private: repository.visibility !== "public",
    owner: simpleUser(view, repository.ownerId),
    html_url: page,
    description: repository.description,
    fork: repository.fork,
    url,
    forks_url: `${url}/forks`,
    keys_url: `${url}/keys{/key_id}`,
    collaborators_url: `${url}/collaborators{/collaborator}`,
    teams_url: `${url}/teams`,
    hooks_url: `${url}/hooks`,
    issue_events_url: `${url}/issues/events{/number}`,
    events_url: `${url}/events`,
    assignees_url: `${url}/assignees{/user}`,
    branches_url: `${url}/branches{/branch}`,
    tags_url: `${url}/tags`,
    blobs_url: `${url}/git/blobs{/sha}`,
    git_tags_url: `${url}/git/tags{/sha}`,
    git_refs_url: `${url}/git/refs{/sha}`,
    trees_url: `${url}/git/trees{/sha}`,
    statuses_url: `${url}/statuses/{sha}`,
    languages_url: `${url}/languages`,
    stargazers_url: `${url}/stargazers`,
    contributors_url: `${url}/contributors`,
    subscribers_url: `${url}/subscribers`,
    subscription_url: `${url}/subscription`,
    commits_url: `${url}/commits{/sha}`,
    git_commits_url: `${url}/git/commits{/sha}`,
    comments_url: `${url}/comments{/number}`,
    issue_comment_url: `${url}/issues/comments{/number}`,
    contents_url: `${url}/contents/{+path}`,
    compare_url: `${url}/compare/{base}...{head}`,
    merges_url: `${url}/merges`,
    archive_url: `${url}/{archive_format}{/ref}`,
    downloads_url: `${url}/downloads`,
    issues_url: `${url}/issues{/number}`,
    pulls_url: `${url}/pulls{/number}`,
    milestones_url: `${url}/milestones{/number}`,
    notifications_url: `${url}/notifications{?since,all,participating}`,
    labels_url: `${url}/labels{/name}`,
    releases_url: `${url}/releases{/id}`,
    deployments_url: `${url}/deployments`,
    created_at: time(repository.createdAt),
    updated_at: time(repository.updatedAt),
    pushed_at: timeOrNull(repository.pushedAt),
    git_url: `git://${host}/${fullName}.git`,
    ssh_url: `git@${host}:${fullName}.git`,
    clone_url: `${page}.git`,
    svn_url: page,
    homepage: repository.homepage,
    size: repository.size,
    stargazers_count: repository.stargazers,
    watchers_count: repository.stargazers,
    language: repository.language,
    has_issues: repository.hasIssues,
    has_projects: repository.hasProjects,
    ...(old ? { has_downloads: repository.hasDownloads } : {}),
    has_wiki: repository.hasWiki,
    has_pages: repository.hasPages,
    has_discussions: repository.hasDiscussions,
    forks_count: repository.forks,
    mirror_url: null,
    archived: repository.archived,
    disabled: repository.disabled,
    open_issues_count: open,
    license: license
      ? {
          key: repository.licenseKey,
          name: license.name,
          spdx_id: license.spdx,
          url: `${view.apiUrl}/licenses/${repository.licenseKey}`,
          node_id: license.id,
        }
      : null,
    allow_forking: repository.allowForking,
    is_template: repository.isTemplate,
    web_commit_signoff_required: repository.webCommitSignoffRequired,
    has_pull_requests: repository.hasPullRequests,
    pull_request_creation_policy: "all",
    topics: repository.topics,
    visibility: repository.visibility,
    forks: repository.forks,
    open_issues: open,
    watchers: repository.stargazers,
    default_branch: repository.defaultBranch,
    ...(role ? { permissions: permissionsOf(role) } : {}),
  };
}

/** full-repository: what a single GET adds to the summary. */
export function fullRepository(view: View, repository: Repository): Json {
  const { world } = view;
  const role = view.roleOf(repository);
  const owner = world.user(repository.ownerId);
  const parent = repository.parentId === null ? undefined : world.repositories.get(repository.parentId);
  const full: Json = repositorySummary(view, repository);
  if (role && role !== "pull" && role !== "triage") {
    Object.assign(full, {
      temp_clone_token: "",
      allow_squash_merge: repository.allowSquashMerge,
      allow_merge_commit: repository.allowMergeCommit,
      allow_rebase_merge: repository.allowRebaseMerge,
      allow_auto_merge: repository.allowAutoMerge,
      delete_branch_on_merge: repository.deleteBranchOnMerge,
      allow_update_branch: repository.allowUpdateBranch,
      ...(view.version === "2022-11-28" ? { use_squash_pr_title_as_default: false } : {}),
      squash_merge_commit_message: "COMMIT_MESSAGES",
      squash_merge_commit_title: "COMMIT_OR_PR_TITLE",
      merge_commit_message: "PR_TITLE",
      merge_commit_title: "MERGE_MESSAGE",
    });
  }
  if (owner.type === "Organization") full.organization = simpleUser(view, owner.id);
  // Unconfirmed: that a parent out of sight is left out.
  if (parent && view.sees(parent)) {
    const source = root(view, parent);
    full.parent = repositorySummary(view, parent);
    if (view.sees(source)) full.source = repositorySummary(view, source);
  }
  if (role === "admin") {
    full.security_and_analysis = {
      secret_scanning: { status: "disabled" },
      secret_scanning_push_protection: { status: "disabled" },
      dependabot_security_updates: { status: "disabled" },
    };
  }
  full.network_count = repository.forks;
  full.subscribers_count = repository.subscribers;
  return full;
}

function root(view: View, repository: Repository): Repository {
  const parent = repository.parentId === null ? undefined : view.world.repositories.get(repository.parentId);
  return parent ? root(view, parent) : repository;
}
