/** Check runs, check suites and commit statuses, in REST and in webhooks. */
import { combinedState, latestRuns, latestStatuses } from "../changes/checks.ts";
import { commitOf } from "../world/commits.ts";
import type { Repository } from "../world/records.ts";
import type { Annotation, CheckRun, CheckSuite, CommitStatus } from "../world/records-code.ts";
import { isPull } from "../world/world.ts";
import { integration } from "./app.ts";
import { commitView, headCommit } from "./commit.ts";
import { repositorySummary } from "./repository.ts";
import { simpleUser } from "./user.ts";
import { type Json, repositoryPage, repositoryUrl, time, timeOrNull, type View } from "./view.ts";

export function runView(view: View, run: CheckRun): Json {
  const { suite } = run;
  const { repository } = suite;
  const url = `${repositoryUrl(view, repository)}/check-runs/${run.id}`;
  const page = `${repositoryPage(view, repository)}/runs/${run.id}`;
  return {
    id: run.id,
    name: run.name,
    node_id: view.world.nodeId("CheckRun", run, repository.id, view.nextIds),
    head_sha: suite.headSha,
    external_id: run.externalId,
    url,
    html_url: page,
    details_url: run.detailsUrl ?? page,
    status: run.status,
    conclusion: run.conclusion,
    started_at: timeOrNull(run.startedAt),
    completed_at: timeOrNull(run.completedAt),
    output: {
      ...run.output,
      annotations_count: run.annotations.length,
      annotations_url: `${url}/annotations`,
    },
    check_suite: { id: suite.id },
    app: integration(view, suite.app),
    pull_requests: pullsAt(view, repository, suite),
  };
}

export function suiteView(view: View, suite: CheckSuite): Json {
  const { repository } = suite;
  return {
    ...suiteParts(view, suite),
    app: integration(view, suite.app),
    repository: repositorySummary(view, repository),
    ...suiteEnd(view, suite),
    rerequestable: true,
    runs_rerequestable: true,
  };
}

function suiteParts(view: View, suite: CheckSuite): Json {
  const { repository } = suite;
  return {
    id: suite.id,
    node_id: view.world.nodeId("CheckSuite", suite, repository.id, view.nextIds),
    head_branch: suite.headBranch,
    head_sha: suite.headSha,
    status: suite.status,
    conclusion: suite.conclusion,
    url: `${repositoryUrl(view, repository)}/check-suites/${suite.id}`,
    before: suite.before,
    after: suite.headSha,
    pull_requests: pullsAt(view, repository, suite),
    created_at: time(suite.createdAt),
    updated_at: time(suite.updatedAt),
  };
}

function suiteEnd(view: View, suite: CheckSuite): Json {
  const { repository, headSha } = suite;
  const head = commitOf(view.world, repository, headSha);
  return {
    latest_check_runs_count: latestRuns(suite).length,
    check_runs_url: `${repositoryUrl(view, repository)}/check-suites/${suite.id}/check-runs`,
    head_commit: head ? headCommit(view, head) : null,
  };
}

/** Open ones with this head, unless the commit came from a fork. */
export function pullsAt(view: View, repository: Repository, { headSha, headBranch }: CheckSuite): readonly Json[] {
  if (headBranch === null) return [];
  const key = `${repository.id}:${headSha}`;
  const known = view.pullsAt.get(key);
  if (known) return known;
  const found: Json[] = [];
  const url = repositoryUrl(view, repository);
  const repo = { id: repository.id, url, name: repository.name };
  for (const row of repository.openPulls === 0 ? [] : repository.rows.pullsByCreated.descending()) {
    if (!isPull(row) || row.state !== "open" || row.pull.head.repositoryId !== repository.id) continue;
    const { id, head, base } = row.pull;
    if (head.sha !== headSha) continue;
    found.push({
      url: `${url}/pulls/${row.number}`,
      id,
      number: row.number,
      head: { ref: head.ref, sha: head.sha, repo },
      base: { ref: base.ref, sha: base.sha, repo },
    });
  }
  view.pullsAt.set(key, found);
  return found;
}

export function annotationView(view: View, run: CheckRun, note: Annotation): Json {
  const { repository, headSha } = run.suite;
  return {
    path: note.path,
    blob_href: `${repositoryPage(view, repository)}/blob/${headSha}/${note.path}`,
    start_line: note.startLine,
    start_column: note.startColumn,
    end_line: note.endLine,
    end_column: note.endColumn,
    annotation_level: note.level,
    title: note.title,
    message: note.message,
    raw_details: note.rawDetails,
  };
}

export function statusView(view: View, status: CommitStatus): Json {
  return { ...simpleStatus(view, status), creator: simpleUser(view, status.creatorId) };
}

function simpleStatus(view: View, status: CommitStatus): Json {
  const { repository } = status;
  return {
    url: `${repositoryUrl(view, repository)}/statuses/${status.sha}`,
    avatar_url: avatarOf(view, status),
    id: status.id,
    node_id: view.world.nodeId("StatusContext", status, repository.id, view.nextIds),
    state: status.state,
    description: status.description,
    target_url: status.targetUrl,
    context: status.context,
    created_at: time(status.createdAt),
    updated_at: time(status.updatedAt),
  };
}

function avatarOf(view: View, { creatorId }: CommitStatus): unknown {
  return simpleUser(view, creatorId).avatar_url;
}

/** combined-commit-status, with the page of its contexts that was asked for. */
export function combinedView(
  view: View,
  repository: Repository,
  sha: string,
  all: readonly CommitStatus[],
  page: readonly CommitStatus[],
): Json {
  const latest = latestStatuses(all);
  const url = `${repositoryUrl(view, repository)}/commits/${sha}`;
  return {
    state: combinedState(latest),
    statuses: page.map((one) => simpleStatus(view, one)),
    sha,
    total_count: latest.length,
    repository: repositorySummary(view, repository),
    commit_url: url,
    url: `${url}/status`,
  };
}

/** With the whole suite inside, less what only the suite's own event has. */
export function payloadRun(view: View, run: CheckRun): Json {
  return {
    ...runView(view, run),
    check_suite: { ...suiteParts(view, run.suite), app: integration(view, run.suite.app) },
  };
}

export function payloadSuite(view: View, suite: CheckSuite): Json {
  return {
    ...suiteParts(view, suite),
    app: integration(view, suite.app),
    rerequestable: true,
    runs_rerequestable: true,
    ...suiteEnd(view, suite),
  };
}

const BRANCHES_TOLD = 10;

export function payloadStatus(view: View, status: CommitStatus): Json {
  const { repository, sha } = status;
  const commit = commitOf(view.world, repository, sha);
  const url = repositoryUrl(view, repository);
  const branches = [...repository.branches].filter(([, head]) => head === sha).slice(0, BRANCHES_TOLD);
  return {
    id: status.id,
    sha,
    name: view.world.fullName(repository),
    target_url: status.targetUrl,
    avatar_url: avatarOf(view, status),
    context: status.context,
    description: status.description,
    state: status.state,
    commit: commit ? commitView(view, repository, commit) : null,
    branches: branches.map(([name, head]) => ({
      name,
      commit: { sha: head, url: `${url}/commits/${head}` },
      protected: false,
    })),
    created_at: offsetTime(status.createdAt),
    updated_at: offsetTime(status.updatedAt),
  };
}

/** This event alone writes its times with an offset. */
function offsetTime(seconds: number): string {
  return time(seconds).replace("Z", "+00:00");
}
