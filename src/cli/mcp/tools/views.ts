/** What agents are shown of the service's documents: what they act by, in fewer words. Each function is pure. */
import { type Fields, type Json, numberOf, objectOf, rowsOf, textOf } from "../../../json.ts";
import type { Texts } from "./texts.ts";

const loginOf = (value: Json | undefined) => textOf(objectOf(value).login);
const namesIn = (value: Json | undefined, key: string) => rowsOf(value).flatMap((one) => textOf(one[key]) ?? []);

/** These fields as they are; null for what is not there. */
function only(document: Fields, ...names: readonly string[]): Fields {
  return Object.fromEntries(names.map((name) => [name, document[name] ?? null]));
}

/** The service's lists of issues have pull requests in them. `texts`: the body is shown, too. */
export function issueView(document: Fields, texts: Texts | null = null): Fields {
  return {
    ...only(document, "number", "title", "state", "state_reason"),
    is_pull_request: document.pull_request !== undefined,
    author: loginOf(document.user),
    labels: namesIn(document.labels, "name"),
    assignees: namesIn(document.assignees, "login"),
    milestone: textOf(objectOf(document.milestone).title),
    ...only(document, "comments", "created_at", "updated_at", "closed_at", "html_url"),
    ...(texts && { body: texts.bounded(textOf(document.body)) }),
  };
}

/** What a search found, in whichever repository. */
export function foundIssueView(document: Fields): Fields {
  const repository = textOf(document.repository_url)?.split("/").slice(-2).join("/") ?? null;
  return { repository, ...issueView(document) };
}

export function pullView(document: Fields, texts: Texts | null = null): Fields {
  const side = (value: Json | undefined) => {
    const { ref, sha, repo } = objectOf(value);
    return { ref: textOf(ref), sha: textOf(sha), repository: textOf(objectOf(repo).full_name) };
  };
  return {
    ...only(document, "number", "title", "state", "draft"),
    author: loginOf(document.user),
    labels: namesIn(document.labels, "name"),
    assignees: namesIn(document.assignees, "login"),
    requested_reviewers: namesIn(document.requested_reviewers, "login"),
    milestone: textOf(objectOf(document.milestone).title),
    head: side(document.head),
    base: side(document.base),
    ...only(document, "created_at", "updated_at", "closed_at", "merged_at", "html_url"),
    ...(texts && {
      ...only(document, "merged", "mergeable", "mergeable_state", "comments", "review_comments", "commits"),
      ...only(document, "additions", "deletions", "changed_files"),
      merged_by: loginOf(document.merged_by),
      body: texts.bounded(textOf(document.body)),
    }),
  };
}

export function commentView(document: Fields, texts: Texts): Fields {
  return {
    ...only(document, "id"),
    author: loginOf(document.user),
    ...only(document, "author_association", "created_at", "updated_at"),
    body: texts.bounded(textOf(document.body)),
  };
}

export function reviewView(document: Fields, texts: Texts): Fields {
  return {
    ...only(document, "id", "state", "submitted_at", "commit_id"),
    author: loginOf(document.user),
    body: texts.bounded(textOf(document.body)),
  };
}

export function reviewCommentView(document: Fields, texts: Texts): Fields {
  return {
    ...commentView(document, texts),
    ...only(document, "path", "line", "side", "in_reply_to_id", "pull_request_review_id"),
  };
}

export function fileView(document: Fields, texts: Texts): Fields {
  return {
    ...only(document, "filename", "status", "additions", "deletions", "previous_filename"),
    patch: texts.bounded(textOf(document.patch)),
  };
}

export function checkRunView(document: Fields): Fields {
  return {
    ...only(document, "name", "status", "conclusion", "started_at", "completed_at", "details_url"),
    app: textOf(objectOf(document.app).slug),
  };
}

export function statusView(document: Fields): Fields {
  return only(document, "context", "state", "description", "target_url", "updated_at");
}

export function commitView(document: Fields, texts: Texts): Fields {
  const { message, author } = objectOf(document.commit);
  return {
    ...only(document, "sha"),
    author: loginOf(document.author) ?? textOf(objectOf(author).name),
    authored_at: textOf(objectOf(author).date),
    message: texts.bounded(textOf(message)),
  };
}

export function releaseView(document: Fields, texts: Texts): Fields {
  return {
    ...only(document, "id", "tag_name", "name", "draft", "prerelease", "created_at", "published_at", "html_url"),
    author: loginOf(document.author),
    assets: rowsOf(document.assets).map((each) => only(each, "name", "size", "download_count", "browser_download_url")),
    body: texts.bounded(textOf(document.body)),
  };
}

export function repositoryView(document: Fields): Fields {
  return {
    ...only(document, "full_name", "description", "private", "archived", "fork", "default_branch", "language"),
    ...only(document, "topics", "open_issues_count", "stargazers_count", "forks_count"),
    ...only(document, "created_at", "updated_at", "pushed_at", "html_url"),
  };
}

/** An event of the feed. Its payload is as large as the service sends it. */
export function changeView(event: Fields, texts: Texts): Fields {
  const data = objectOf(event.data);
  const subject = [data.issue, data.pull_request, data.release, data.milestone].map(objectOf);
  const said = [data.comment, data.review].map(objectOf).find(({ id }) => numberOf(id) !== null);
  return {
    ...only(event, "id", "time"),
    repository: textOf(objectOf(data.repository).full_name),
    event: (textOf(event.type) ?? "").replace(/^com\.github\./, ""),
    subject: textOf(event.subject),
    title: subject.flatMap(({ title, name }) => textOf(title) ?? textOf(name) ?? []).at(0) ?? null,
    by: loginOf(data.sender),
    ...(event.tainmade === true && { is_found_by_mirror: true }),
    ...(data.label !== undefined && { label: textOf(objectOf(data.label).name) }),
    ...(data.assignee !== undefined && { assignee: loginOf(data.assignee) }),
    ...(data.changes !== undefined && { changed: Object.keys(objectOf(data.changes)) }),
    ...(said && {
      said: { ...only(said, "id", "state"), author: loginOf(said.user), body: texts.bounded(textOf(said.body)) },
    }),
  };
}
