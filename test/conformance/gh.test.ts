/** `gh`, unmodified, against the mirror: what each command prints is compared with what upstream has. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { type ApiWorld, openApiWorld } from "../api/api-world.ts";
import { DEVELOPMENT, ENTERPRISE, type Gh, hasGh, openGh, openGhAtPort80 } from "./gh-runs.ts";

// biome-ignore lint/suspicious/noExplicitAny: what two programs print is compared, not trusted
type Json = any;

const resources = new AsyncDisposableStack();
let world: ApiWorld;
let gh: Gh;
let repo: string;
/** Upstream's rows, as REST shows them there. */
let issues: Json[];
let pulls: Json[];
let labels: Json[];
let comments: Json[];

async function all(path: string): Promise<Json[]> {
  const rows: Json[] = [];
  for (let page = 1; ; page += 1) {
    const { body, text } = await world.getUpstream(`${path}${path.includes("?") ? "&" : "?"}per_page=100&page=${page}`);
    if (!Array.isArray(body)) throw new Error(`Upstream shows no list at ${path}: ${text}`);
    rows.push(...body);
    if (body.length < 100) return rows;
  }
}

async function readTruth(): Promise<void> {
  const both = await all(`/repos/${repo}/issues?state=all`);
  issues = both.filter((row) => !row.pull_request);
  pulls = await all(`/repos/${repo}/pulls?state=all`);
  labels = await all(`/repos/${repo}/labels`);
  comments = await all(`/repos/${repo}/issues/comments`);
}

beforeAll(async () => {
  if (!hasGh) return;
  world = resources.use(await openApiWorld({ issues: 150, repositories: 2, upstreamTokens: 40 }));
  Object.assign(world.upstream.quota.limits, { contentPerMinute: Infinity, contentPerHour: Infinity });
  repo = world.repositories.find((one) => !one.private)?.fullName ?? "";
  gh = await openGh(world, resources);
  await readTruth();
});
afterAll(() => resources.disposeAsync());

/** What a command prints; it must have succeeded. */
async function printed(args: string[], options?: Parameters<Gh>[1]): Promise<string> {
  const { status, out, err } = await gh(args, options);
  expect(status, `gh ${args.join(" ")}\n${out}${err}`).toBe(0);
  return out;
}

const json = async (args: string[], options?: Parameters<Gh>[1]): Promise<Json> =>
  JSON.parse(await printed(args, options));
const lines = (text: string) => text.split("\n").filter((line) => line !== "");
const numbers = (rows: Json[]): number[] => rows.map((row) => row.number);
const sorted = (rows: number[]) => [...rows].sort((a, b) => a - b);
const newestFirst = (rows: Json[]) =>
  numbers(
    [...rows].sort((a, b) =>
      a.created_at === b.created_at ? b.number - a.number : a.created_at < b.created_at ? 1 : -1,
    ),
  );
const mostCommon = (values: string[]): string => {
  const counts = Map.groupBy(values, (value) => value);
  return [...counts].sort(([, a], [, b]) => b.length - a.length)[0]?.[0] ?? "";
};
/** As GraphQL and so `gh` name the author: nobody where an account is gone. */
const login = (user: Json) => (!user || user.login === "ghost" ? "" : user.login.replace(/\[bot\]$/, ""));
/** `gh` writes control characters with a caret, and what is no character as the sign for that. */
const printable = (text: string) =>
  [...text.toWellFormed()]
    .map((sign) => (sign < " " && !"\n\r\t".includes(sign) ? `^${String.fromCharCode(sign.charCodeAt(0) + 64)}` : sign))
    .join("");
/** Who is no user `gh` takes for an app, in its JSON. */
const jsonLogin = (user: Json) => (user?.type === "User" && login(user) !== "" ? login(user) : `app/${login(user)}`);
const time = (text: string) => `${text.replace("T", " ").replace("Z", "")} +0000 UTC`;
const labelNames = (row: Json): string[] => row.labels.map((label: Json) => label.name);

describe.skipIf(!hasGh)("gh (skipped where it is not installed: apt-get install gh)", () => {
  describe("api", () => {
    test("one resource, all pages of a list, GraphQL and its pages", async () => {
      const query =
        'query($endCursor: String) { repository(owner: "OWNER", name: "NAME") { issues(first: 40, after: $endCursor) { nodes { number } pageInfo { hasNextPage endCursor } } } }';
      const [owner = "", name = ""] = repo.split("/");
      const [user, everything, viewer, walked] = await Promise.all([
        json(["api", "user"]),
        printed(["api", "--paginate", `repos/${repo}/issues?state=all&per_page=20`, "--jq", ".[].number"]),
        json(["api", "graphql", "-f", "query={viewer{login}}"]),
        printed([
          ...["api", "graphql", "--paginate", "--jq", ".data.repository.issues.nodes[].number"],
          ...["-f", `query=${query.replace("OWNER", owner).replace("NAME", name)}`],
        ]),
      ]);
      expect(user.login).toBe("mirror-owner");
      expect(sorted(lines(everything).map(Number))).toEqual(sorted(numbers([...issues, ...pulls])));
      expect(viewer).toEqual({ data: { viewer: { login: "mirror-owner" } } });
      expect(sorted(lines(walked).map(Number))).toEqual(sorted(numbers(issues)));
      expect(lines(walked).length).toBeGreaterThan(40);
    });

    test("what is refused, with the status and in the words of the answer", async () => {
      const [unserved, unknown, stranger, nowhere] = await Promise.all([
        gh(["api", `repos/${repo}/stargazers`]),
        gh(["api", `repos/${repo}/issues/99999`]),
        gh(["issue", "list", "-R", repo], { token: "tain_unknown" }),
        gh(["issue", "list", "-R", "nobody/nothing"]),
      ]);
      expect(unserved.err).toContain("gh: Forbidden: this mirror does not serve GET on this route, and so cannot say");
      expect(unknown.err).toContain("gh: Not Found (HTTP 404)");
      expect(stranger.err).toContain("HTTP 401: Bad credentials");
      expect(nowhere.err).toContain("Could not resolve to a Repository with the name 'nobody/nothing'");
      for (const { status } of [unserved, unknown, stranger, nowhere]) expect(status).not.toBe(0);
    });
  });

  describe("repo", () => {
    test("view, in words and with every field that is mirrored", async () => {
      const fields =
        "assignableUsers,createdAt,defaultBranchRef,deleteBranchOnMerge,description,diskUsage,forkCount,hasDiscussionsEnabled,hasIssuesEnabled,hasProjectsEnabled,hasWikiEnabled,homepageUrl,id,isArchived,isFork,isInOrganization,isMirror,isPrivate,isTemplate,issues,labels,licenseInfo,mergeCommitAllowed,milestones,mirrorUrl,name,nameWithOwner,owner,parent,primaryLanguage,pullRequests,pushedAt,rebaseMergeAllowed,repositoryTopics,squashMergeAllowed,sshUrl,stargazerCount,templateRepository,updatedAt,url,viewerCanAdminister,viewerPermission,watchers";
      const { body } = await world.getUpstream(`/repos/${repo}`);
      const milestones = await all(`/repos/${repo}/milestones?state=all`);
      const [words, shown] = await Promise.all([
        printed(["repo", "view", repo]),
        json(["repo", "view", repo, "--json", fields]),
      ]);
      expect(words).toBe(`name:\t${body.full_name}\ndescription:\t${body.description ?? ""}\n`);
      expect(Object.keys(shown).sort()).toEqual(fields.split(",").sort());
      expect(shown).toMatchObject({
        createdAt: body.created_at,
        defaultBranchRef: { name: body.default_branch },
        deleteBranchOnMerge: body.delete_branch_on_merge,
        description: body.description ?? "",
        diskUsage: body.size,
        forkCount: body.forks_count,
        hasDiscussionsEnabled: body.has_discussions,
        hasIssuesEnabled: body.has_issues,
        hasProjectsEnabled: body.has_projects,
        hasWikiEnabled: body.has_wiki,
        homepageUrl: body.homepage ?? "",
        id: body.node_id,
        isArchived: body.archived,
        isFork: body.fork,
        isInOrganization: body.owner.type === "Organization",
        isMirror: false,
        isPrivate: body.private,
        isTemplate: body.is_template,
        issues: { totalCount: issues.filter(({ state }) => state === "open").length },
        labels: shown.labels,
        licenseInfo: body.license ? { key: body.license.key, name: body.license.name, nickname: "" } : null,
        mergeCommitAllowed: body.allow_merge_commit,
        mirrorUrl: "",
        name: body.name,
        nameWithOwner: body.full_name,
        owner: { id: body.owner.node_id, login: body.owner.login },
        parent: null,
        primaryLanguage: body.language ? { name: body.language } : null,
        pullRequests: { totalCount: pulls.filter(({ state }) => state === "open").length },
        pushedAt: body.pushed_at,
        rebaseMergeAllowed: body.allow_rebase_merge,
        repositoryTopics: body.topics.length === 0 ? null : body.topics.map((name: string) => ({ name })),
        squashMergeAllowed: body.allow_squash_merge,
        sshUrl: body.ssh_url,
        stargazerCount: body.stargazers_count,
        templateRepository: null,
        updatedAt: body.updated_at,
        url: body.html_url,
        viewerCanAdminister: body.permissions.admin,
        viewerPermission: "ADMIN",
        watchers: { totalCount: body.subscribers_count },
      });
      expect(shown.labels.map((label: Json) => label.name).sort()).toEqual(labels.map(({ name }) => name).sort());
      expect(sorted(numbers(shown.milestones))).toEqual(
        sorted(numbers(milestones.filter(({ state }) => state === "open"))),
      );
      const assigned = [...issues, ...pulls].flatMap((row) => row.assignees.map((user: Json) => user.login));
      expect(shown.assignableUsers.map((user: Json) => user.login)).toEqual(expect.arrayContaining(assigned));
    });

    test("list, and a token that only reads", async () => {
      const [owner = ""] = repo.split("/");
      const theirs = world.repositories.filter(({ fullName }) => fullName.startsWith(`${owner}/`));
      const [listed, reading] = await Promise.all([
        json(["repo", "list", owner, "--json", "nameWithOwner"]),
        json(["repo", "view", repo, "--json", "viewerPermission,viewerCanAdminister"], { token: world.readToken }),
      ]);
      expect(listed.map((one: Json) => one.nameWithOwner).sort()).toEqual(
        theirs.map(({ fullName }) => fullName).sort(),
      );
      expect(reading).toEqual({ viewerPermission: "READ", viewerCanAdminister: false });
    });
  });

  describe("issue", () => {
    test("list, by each filter", async () => {
      const open = issues.filter(({ state }) => state === "open");
      const label = mostCommon(open.flatMap(labelNames));
      const other = mostCommon(
        open
          .filter((row) => labelNames(row).includes(label))
          .flatMap((row) => labelNames(row).filter((name) => name !== label)),
      );
      const assignee = mostCommon(issues.flatMap((row) => row.assignees.map((user: Json) => user.login)));
      const author = mostCommon(issues.map(({ user }) => login(user)).filter(Boolean));
      const milestone = mostCommon(issues.flatMap((row) => row.milestone?.title ?? []));
      const mentioned = mostCommon(
        issues.flatMap((row) => [...(row.body ?? "").matchAll(/cc @([\w-]+)/g)].map(([, name]) => name as string)),
      );
      const mentioning = (await all(`/repos/${repo}/issues?state=all&mentioned=${mentioned}`)).filter(
        (row) => !row.pull_request,
      );
      const oldest = [...issues].sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
      const cases: [filter: string[], wanted: Json[], isOrdered?: boolean][] = [
        [[], open],
        [["--state", "all"], issues],
        [["--state", "closed"], issues.filter(({ state }) => state === "closed")],
        [["--label", label], open.filter((row) => labelNames(row).includes(label))],
        [
          ["--label", label, "--label", other],
          open.filter((row) => labelNames(row).includes(label) && labelNames(row).includes(other)),
        ],
        [
          ["--assignee", assignee, "--state", "all"],
          issues.filter((row) => row.assignees.some((user: Json) => user.login === assignee)),
        ],
        [["--author", author, "--state", "all"], issues.filter(({ user }) => login(user) === author)],
        [["--milestone", milestone, "--state", "all"], issues.filter((row) => row.milestone?.title === milestone)],
        [["--mention", mentioned, "--state", "all"], mentioning],
        [
          ["--search", "no:assignee sort:created-asc", "--state", "all"],
          oldest.filter((row) => row.assignees.length === 0),
          true,
        ],
        [
          ["--search", `author:${author} is:closed`, "--state", "all"],
          issues.filter((row) => login(row.user) === author && row.state === "closed"),
        ],
      ];
      await Promise.all(
        cases.map(async ([filter, wanted, isOrdered]) => {
          const found = numbers(
            await json(["issue", "list", "-R", repo, "--limit", "200", "--json", "number", ...filter]),
          );
          expect(wanted.length, filter.join(" ")).toBeGreaterThan(0);
          if (isOrdered) expect(found, filter.join(" ")).toEqual(numbers(wanted));
          else expect(sorted(found), filter.join(" ")).toEqual(sorted(numbers(wanted)));
        }),
      );
      const five = oldest.slice(0, 5);
      const limit = ["--state", "all", "--limit", "5", "--json", "number"];
      const [newest, first] = await Promise.all([
        json(["issue", "list", "-R", repo, ...limit]),
        json(["issue", "list", "-R", repo, "--search", "sort:created-asc", ...limit]),
      ]);
      expect(numbers(newest)).toEqual(newestFirst(issues).slice(0, 5));
      expect(numbers(first)).toEqual(numbers(five));
    });

    test("list and view, in words", async () => {
      const open = issues.filter(({ state }) => state === "open");
      const byNumber = new Map(open.map((row) => [row.number, row]));
      const listed = await printed(["issue", "list", "-R", repo, "--limit", "200"]);
      expect(lines(listed)).toEqual(
        newestFirst(open).map((number) => {
          const row = byNumber.get(number);
          return [number, "OPEN", row.title.trim(), labelsAsPrinted(listed, row), time(row.updated_at)].join("\t");
        }),
      );
      const commented = issues.find((row) => row.comments > 1) ?? issues[0];
      const [viewed, talk] = await Promise.all([
        printed(["issue", "view", String(commented.number), "-R", repo]),
        printed(["issue", "view", String(commented.number), "-R", repo, "--comments"]),
      ]);
      const [head = "", body = ""] = viewed.split(/\n--\n(.*)/s);
      expect(head.split("\n").filter((line) => !/^(labels|assignees):/.test(line))).toEqual([
        `title:\t${commented.title}`,
        `state:\t${commented.state.toUpperCase()}`,
        `author:\t${login(commented.user)}`,
        `comments:\t${commented.comments}`,
        "projects:\t",
        `milestone:\t${commented.milestone?.title ?? ""}`,
        `number:\t${commented.number}`,
      ]);
      expect(body.trimEnd()).toBe((commented.body ?? "").trimEnd());
      const said = comments.filter((row) => row.issue_url.endsWith(`/issues/${commented.number}`));
      expect(talk).toBe(
        said
          .map((row) => {
            const association = row.author_association.toLowerCase();
            return `author:\t${login(row.user)}\nassociation:\t${association}\nedited:\t${row.created_at !== row.updated_at}\nstatus:\tnone\n--\n${row.body}\n--\n`;
          })
          .join(""),
      );
    });

    /** The service lists an issue's labels in an order of its own; here only which they are is compared. */
    function labelsAsPrinted(listed: string, row: Json): string {
      const line = lines(listed).find((one) => one.startsWith(`${row.number}\t`)) ?? "";
      const shown = line.split("\t")[3] ?? "";
      const isSame = shown.split(", ").filter(Boolean).sort().join() === labelNames(row).sort().join();
      return isSame ? shown : labelNames(row).join(", ");
    }

    test("list and view, with every field", async () => {
      const fields =
        "assignees,author,body,closed,closedAt,comments,createdAt,id,labels,milestone,number,projectCards,reactionGroups,state,title,updatedAt,url";
      const listed = await json(["issue", "list", "-R", repo, "--state", "all", "--limit", "200", "--json", fields]);
      expect(listed).toHaveLength(issues.length);
      const byNumber = new Map(issues.map((row) => [row.number, row]));
      for (const shown of listed) expect(comparable(shown)).toEqual(asShown(byNumber.get(shown.number)));
      const reacted = issues.find((row) => row.reactions?.total_count > 0) ?? issues[0];
      const viewed = await json(["issue", "view", String(reacted.number), "-R", repo, "--json", fields]);
      expect(comparable(viewed)).toEqual(asShown(reacted));
      const refused = await gh(["issue", "view", "99999", "-R", repo]);
      expect(refused.err).toContain("Could not resolve to an issue or pull request with the number of 99999.");
    });
  });

  const REACTIONS = {
    THUMBS_UP: "+1",
    THUMBS_DOWN: "-1",
    LAUGH: "laugh",
    HOORAY: "hooray",
    CONFUSED: "confused",
    HEART: "heart",
    ROCKET: "rocket",
    EYES: "eyes",
  };
  const reactions = ({ reactions: counts }: Json) =>
    Object.entries(REACTIONS)
      .filter(([, key]) => counts[key] > 0)
      .map(([content, key]) => ({ content, users: { totalCount: counts[key] } }));

  /** What `gh` shows of an issue, without what only it adds; lists in an order of their own. */
  function comparable({ labels: shownLabels, assignees, comments: talk, author, milestone, ...rest }: Json): Json {
    return {
      ...rest,
      author: author?.login ?? "",
      labels: shownLabels.map((label: Json) => label.name).sort(),
      assignees: assignees.map((user: Json) => user.login),
      comments: talk.map((one: Json) => [
        one.author?.login ?? "",
        one.authorAssociation,
        one.body,
        one.createdAt,
        one.viewerDidAuthor,
      ]),
      milestone: milestone?.number ?? null,
    };
  }

  function asShown(row: Json): Json {
    const said = comments.filter((one) => one.issue_url.endsWith(`/issues/${row.number}`));
    return {
      author: jsonLogin(row.user),
      labels: labelNames(row).sort(),
      assignees: row.assignees.map((user: Json) => user.login),
      comments: said.map((one) => [
        login(one.user),
        one.author_association,
        printable(one.body),
        one.created_at,
        one.user?.id === world.userId,
      ]),
      milestone: row.milestone?.number ?? null,
      body: printable(row.body ?? ""),
      closed: row.state === "closed",
      closedAt: row.closed_at,
      createdAt: row.created_at,
      id: row.node_id,
      number: row.number,
      projectCards: [],
      reactionGroups: reactions(row),
      state: row.state.toUpperCase(),
      title: printable(row.title),
      updatedAt: row.updated_at,
      url: row.html_url,
    };
  }

  describe("pr", () => {
    const state = (row: Json) => (row.merged_at ? "MERGED" : row.state.toUpperCase());

    test("list, by each filter, and in words", async () => {
      const open = pulls.filter((row) => row.state === "open");
      const author = mostCommon(pulls.map(({ user }) => login(user)).filter(Boolean));
      const label = mostCommon(pulls.flatMap(labelNames));
      const head = open[0]?.head.ref as string;
      const cases: [string[], Json[]][] = [
        [[], open],
        [["--state", "all"], pulls],
        [["--state", "merged"], pulls.filter((row) => row.merged_at)],
        [["--state", "closed"], pulls.filter((row) => row.state === "closed")],
        [["--head", head], open.filter((row) => row.head.ref === head)],
        [["--base", open[0]?.base.ref], open.filter((row) => row.base.ref === open[0]?.base.ref)],
        [["--state", "all", "--label", label], pulls.filter((row) => labelNames(row).includes(label))],
        [["--state", "all", "--author", author], pulls.filter(({ user }) => login(user) === author)],
        [["--state", "all", "--search", "is:merged sort:created-asc"], pulls.filter((row) => row.merged_at)],
      ];
      await Promise.all(
        cases.map(async ([filter, wanted]) => {
          const found = await json(["pr", "list", "-R", repo, "--limit", "200", "--json", "number", ...filter]);
          expect(wanted.length, filter.join(" ")).toBeGreaterThan(0);
          expect(sorted(numbers(found)), filter.join(" ")).toEqual(sorted(numbers(wanted)));
        }),
      );
      const byNumber = new Map(open.map((row) => [row.number, row]));
      expect(lines(await printed(["pr", "list", "-R", repo, "--limit", "200"]))).toEqual(
        newestFirst(open).map((number) => {
          const row = byNumber.get(number);
          const isForeign = row.head.repo?.id !== row.base.repo.id;
          const owner = row.head.user?.type === "Bot" ? "" : login(row.head.user);
          const branch = isForeign ? `${owner}:${row.head.ref}` : row.head.ref;
          return [number, row.title.trim(), branch, row.draft ? "DRAFT" : "OPEN", time(row.created_at)].join("\t");
        }),
      );
    });

    test("list and view, with every field that is mirrored, and in words", async () => {
      const fields =
        "additions,assignees,author,baseRefName,body,changedFiles,closed,closedAt,comments,createdAt,deletions,headRefName,headRefOid,headRepository,headRepositoryOwner,id,isCrossRepository,isDraft,labels,latestReviews,maintainerCanModify,mergeCommit,mergeStateStatus,mergeable,mergedAt,mergedBy,milestone,number,potentialMergeCommit,projectCards,reactionGroups,reviewDecision,reviewRequests,reviews,state,statusCheckRollup,title,updatedAt,url";
      const listed = await json(["pr", "list", "-R", repo, "--state", "all", "--limit", "200", "--json", fields]);
      expect(sorted(numbers(listed))).toEqual(sorted(numbers(pulls)));
      const some = listed.slice(0, 12);
      for (const shown of some) {
        const { body: row } = await world.getUpstream(`/repos/${repo}/pulls/${shown.number}`);
        const { body: side } = await world.getUpstream(`/repos/${repo}/issues/${shown.number}`);
        const reviews = await all(`/repos/${repo}/pulls/${shown.number}/reviews`);
        const asked = row.requested_reviewers.map((user: Json) => user.login);
        expect(shown).toMatchObject({
          additions: row.additions,
          deletions: row.deletions,
          changedFiles: row.changed_files,
          author: { login: jsonLogin(row.user) },
          baseRefName: row.base.ref,
          body: printable(row.body ?? ""),
          closed: row.state === "closed",
          closedAt: row.closed_at,
          createdAt: row.created_at,
          headRefName: row.head.ref,
          headRefOid: row.head.sha,
          id: row.node_id,
          isDraft: row.draft,
          maintainerCanModify: row.maintainer_can_modify,
          mergeCommit: row.merged ? { oid: row.merge_commit_sha } : null,
          mergedAt: row.merged_at,
          projectCards: [],
          reactionGroups: reactions(side),
          reviewDecision: "",
          reviewRequests: asked.map((name: string) => ({ __typename: "User", login: name })),
          reviews: reviews.map((review) => ({
            id: review.node_id,
            state: review.state,
            body: printable(review.body ?? ""),
          })),
          state: state(row),
          statusCheckRollup: [],
          title: printable(row.title),
          updatedAt: row.updated_at,
          url: row.html_url,
        });
        expect(shown.comments.map((one: Json) => one.body)).toEqual(
          comments.filter((one) => one.issue_url.endsWith(`/issues/${row.number}`)).map((one) => printable(one.body)),
        );
        expect(shown.latestReviews.every((review: Json) => !asked.includes(review.author.login))).toBe(true);
      }
      const [{ number }] = some;
      const { body: row } = await world.getUpstream(`/repos/${repo}/pulls/${number}`);
      const viewed = await printed(["pr", "view", String(number), "-R", repo]);
      expect(viewed).toContain(
        `title:\t${row.title}\nstate:\t${row.draft ? "DRAFT" : state(row)}\nauthor:\t${login(row.user)}\n`,
      );
      expect(viewed).toContain(
        `number:\t${number}\nurl:\t${row.html_url}\nadditions:\t${row.additions}\ndeletions:\t${row.deletions}\n`,
      );
      const refused = await gh(["pr", "view", String(number), "-R", repo, "--json", "files"]);
      expect(refused.err).toContain("The files of this pull request are not mirrored.");
    });
  });

  test("label list, in words and as JSON", async () => {
    const [words, shown] = await Promise.all([
      printed(["label", "list", "-R", repo, "--limit", "100"]),
      json(["label", "list", "-R", repo, "--limit", "100", "--json", "name,color,description,isDefault,url"]),
    ]);
    const made = [...labels].sort((a, b) => a.id - b.id);
    expect(words).toBe(made.map((row) => `${row.name}\t${row.description ?? ""}\t#${row.color}\n`).join(""));
    expect(shown).toEqual(
      made.map((row) => ({
        color: row.color,
        description: row.description ?? "",
        isDefault: row.default,
        name: row.name,
        url: `https://github.com/${repo}/labels/${encodeURIComponent(row.name)}`,
      })),
    );
  });

  test("search issues, prs and repos", async () => {
    const label = mostCommon(issues.flatMap(labelNames));
    const author = mostCommon(pulls.map(({ user }) => login(user)).filter(Boolean));
    const [owner = ""] = repo.split("/");
    const limit = ["--limit", "200"];
    const [found, prs, repos] = await Promise.all([
      json([
        "search",
        "issues",
        "--repo",
        repo,
        "--label",
        label,
        ...limit,
        "--json",
        "number,title,state,url,isPullRequest,commentsCount",
      ]),
      json(["search", "prs", "--repo", repo, "--author", author, "--merged", ...limit, "--json", "number,state"]),
      json(["search", "repos", "--owner", owner, "--json", "fullName,id,stargazersCount,visibility"]),
    ]);
    const byNumber = (rows: Json[]) => [...rows].sort((a, b) => a.number - b.number);
    expect(byNumber(found)).toEqual(
      byNumber(issues.filter((row) => labelNames(row).includes(label))).map((row) => ({
        commentsCount: row.comments,
        isPullRequest: false,
        number: row.number,
        state: row.state,
        title: printable(row.title),
        url: row.html_url,
      })),
    );
    expect(byNumber(prs)).toEqual(
      byNumber(pulls.filter((row) => login(row.user) === author && row.merged_at)).map(({ number }) => ({
        number,
        state: "merged",
      })),
    );
    expect(repos.map((one: Json) => one.fullName).sort()).toEqual(
      world.repositories
        .map(({ fullName }) => fullName)
        .filter((name) => name.startsWith(`${owner}/`))
        .sort(),
    );
  });

  test("status, pr status and issue status, as a user who has something to do", async () => {
    const open = issues.filter(({ state }) => state === "open");
    const name = mostCommon(open.flatMap((row) => row.assignees.map((user: Json) => user.login)));
    const mine = open.filter((row) => row.assignees.some((user: Json) => user.login === name));
    const userId = mine[0]?.assignees.find((user: Json) => user.login === name).id as number;
    const token = await createApiToken(world.ctx, { userId, canWrite: false });
    const [all, ofRepository, pulled] = await Promise.all([
      printed(["status"], { token }),
      printed(["issue", "status", "-R", repo], { token }),
      printed(["pr", "status", "-R", repo], { token }),
    ]);
    const section = (all.split("Assigned Issues")[1] ?? "").split("Review Requests")[0] ?? "";
    for (const { number } of mine.slice(0, 4)) expect(section).toContain(`#${number}`);
    const assigned = (ofRepository.split("Issues assigned to you")[1] ?? "").split("Issues mentioning you")[0] ?? "";
    expect(sorted([...assigned.matchAll(/^ +(\d+)\t/gm)].map(([, number]) => Number(number)))).toEqual(
      sorted(numbers(mine)).slice(0, 10),
    );
    const created = pulls.filter((row) => row.state === "open" && login(row.user) === name);
    const shown = (pulled.split("Created by you")[1] ?? "").split("Requesting a code review")[0] ?? "";
    expect(sorted([...shown.matchAll(/^ +(\d+)\t/gm)].map(([, number]) => Number(number)))).toEqual(
      sorted(numbers(created)),
    );
  });

  test("an issue is created, edited, commented on, closed and reopened: upstream has it, and the mirror shows it", async () => {
    const [first, second] = [labels[0].name, labels[1].name];
    const [someone, other] = (await world.get(`/repos/${repo}/assignees`)).body
      .filter((user: Json) => user.type === "User")
      .map((user: Json) => user.login);
    const [milestone] = await all(`/repos/${repo}/milestones`);
    const made = await printed([
      ...["issue", "create", "-R", repo, "--title", "By gh", "--body", "first\n\nsecond", "--label", first],
      ...["--assignee", someone, "--milestone", milestone.title],
    ]);
    const number = Number(made.trim().split("/").at(-1));
    expect(made.trim()).toBe(`https://github.com/${repo}/issues/${number}`);
    const truth = async () => {
      const { body } = await world.getUpstream(`/repos/${repo}/issues/${number}`);
      const { title, body: text, state, state_reason: reason, assignees, milestone: due } = body;
      return {
        title,
        text,
        state,
        reason,
        labels: labelNames(body),
        assignees: assignees.map((user: Json) => user.login),
        due: due?.number,
      };
    };
    const start = {
      title: "By gh",
      text: "first\n\nsecond",
      state: "open",
      reason: null,
      labels: [first],
      assignees: [someone],
      due: milestone.number,
    };
    expect(await truth()).toEqual(start);

    await printed([
      ...["issue", "edit", String(number), "-R", repo, "--title", "Edited", "--body", "new", "--add-label", second],
      ...["--remove-label", first, "--add-assignee", other, "--remove-assignee", someone],
    ]);
    const edited = { ...start, title: "Edited", text: "new", labels: [second], assignees: [other] };
    expect(await truth()).toEqual(edited);

    const url = (await printed(["issue", "comment", String(number), "-R", repo, "--body", "said by gh"])).trim();
    const [comment] = await all(`/repos/${repo}/issues/${number}/comments`);
    expect([comment.html_url, comment.body]).toEqual([url, "said by gh"]);

    await printed(["issue", "close", String(number), "-R", repo, "--reason", "not planned"]);
    expect(await truth()).toEqual({ ...edited, state: "closed", reason: "not_planned" });
    const closed = await json([
      "issue",
      "view",
      String(number),
      "-R",
      repo,
      "--json",
      "state,title,body,labels,assignees,comments,milestone",
    ]);
    expect([
      closed.state,
      closed.title,
      closed.body,
      closed.labels[0].name,
      closed.assignees[0].login,
      closed.comments[0].body,
    ]).toEqual(["CLOSED", "Edited", "new", second, other, "said by gh"]);
    expect(closed.milestone.number).toBe(milestone.number);

    await printed(["issue", "reopen", String(number), "-R", repo]);
    expect(await truth()).toMatchObject({ state: "open" });
    const reading = await gh(["issue", "close", String(number), "-R", repo], { token: world.readToken });
    expect(reading.status).not.toBe(0);
    expect(await truth()).toMatchObject({ state: "open" });
    await readTruth();
  });

  test("at the enterprise addresses, whose features gh asks for first", async () => {
    const host = ENTERPRISE;
    const there = `${host}/${repo}`;
    const [user, paged, listed, prs, seen] = await Promise.all([
      json(["api", "user"], { host }),
      printed(["api", "--paginate", `repos/${repo}/issues?state=all&per_page=50`, "--jq", ".[].number"], { host }),
      json(["issue", "list", "-R", there, "--state", "all", "--limit", "200", "--json", "number,url"], { host }),
      json(["pr", "list", "-R", there, "--state", "all", "--limit", "200", "--json", "number"], { host }),
      json(["repo", "view", there, "--json", "nameWithOwner"], { host }),
    ]);
    expect(user.url).toBe(`http://${host}/api/v3/users/mirror-owner`);
    expect(sorted(lines(paged).map(Number))).toEqual(sorted(numbers([...issues, ...pulls])));
    expect(sorted(numbers(listed))).toEqual(sorted(numbers(issues)));
    expect(sorted(numbers(prs))).toEqual(sorted(numbers(pulls)));
    expect(seen.nameWithOwner).toBe(repo);
  });

  test(`at port 80, where gh looks for ${DEVELOPMENT} (skipped where the port is not ours)`, async ({ skip }) => {
    await using own = new AsyncDisposableStack();
    const atPort = await openGhAtPort80(world, own);
    if (typeof atPort === "string") return skip(atPort);
    const filter = ["--state", "all", "--limit", "200", "--json", "number"];
    const listed = await atPort(["issue", "list", "-R", repo, ...filter]);
    expect(listed.err).toBe("");
    expect(sorted(numbers(JSON.parse(listed.out)))).toEqual(sorted(numbers(issues)));
    const paged = await atPort([
      "api",
      "--paginate",
      `repos/${repo}/issues?state=all&per_page=50`,
      "--jq",
      ".[].number",
    ]);
    expect(paged.err).toBe("");
    expect(sorted(lines(paged.out).map(Number))).toEqual(sorted(numbers([...issues, ...pulls])));
  });
});
