/** `gh`, unmodified, against the mirror: what each command prints is compared with what upstream has. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasGh } from "./gh-runs.ts";
import {
  GhWorld,
  type Json,
  jsonLogin,
  labelNames,
  lines,
  login,
  mostCommon,
  newestFirst,
  numbers,
  printable,
  reactions,
  sorted,
  time,
} from "./gh-world.ts";

let at: GhWorld;
beforeAll(async () => {
  if (hasGh) at = await GhWorld.open();
});
afterAll(() => at?.[Symbol.asyncDispose]());

describe.skipIf(!hasGh)("gh (skipped where it is not installed: apt-get install gh)", () => {
  describe("api", () => {
    test("one resource, all pages of a list, GraphQL and its pages", async () => {
      const query =
        'query($endCursor: String) { repository(owner: "OWNER", name: "NAME") { issues(first: 40, after: $endCursor) { nodes { number } pageInfo { hasNextPage endCursor } } } }';
      const [owner = "", name = ""] = at.repo.split("/");
      const [user, everything, viewer, walked] = await Promise.all([
        at.json(["api", "user"]),
        at.printed(["api", "--paginate", `repos/${at.repo}/issues?state=all&per_page=20`, "--jq", ".[].number"]),
        at.json(["api", "graphql", "-f", "query={viewer{login}}"]),
        at.printed([
          ...["api", "graphql", "--paginate", "--jq", ".data.repository.issues.nodes[].number"],
          ...["-f", `query=${query.replace("OWNER", owner).replace("NAME", name)}`],
        ]),
      ]);
      expect(user.login).toBe("mirror-owner");
      expect(sorted(lines(everything).map(Number))).toEqual(sorted(numbers([...at.issues, ...at.pulls])));
      expect(viewer).toEqual({ data: { viewer: { login: "mirror-owner" } } });
      expect(sorted(lines(walked).map(Number))).toEqual(sorted(numbers(at.issues)));
      expect(lines(walked).length).toBeGreaterThan(40);
    });

    test("what is refused, with the status and in the words of the answer", async () => {
      const [unserved, unknown, stranger, nowhere] = await Promise.all([
        at.gh(["api", `repos/${at.repo}/stargazers`]),
        at.gh(["api", `repos/${at.repo}/issues/99999`]),
        at.gh(["issue", "list", "-R", at.repo], { token: "tain_unknown" }),
        at.gh(["issue", "list", "-R", "nobody/nothing"]),
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
      const { body } = await at.world.getUpstream(`/repos/${at.repo}`);
      const milestones = await at.all(`/repos/${at.repo}/milestones?state=all`);
      const [words, shown] = await Promise.all([
        at.printed(["repo", "view", at.repo]),
        at.json(["repo", "view", at.repo, "--json", fields]),
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
        issues: { totalCount: at.issues.filter(({ state }) => state === "open").length },
        labels: shown.labels,
        licenseInfo: body.license ? { key: body.license.key, name: body.license.name, nickname: "" } : null,
        mergeCommitAllowed: body.allow_merge_commit,
        mirrorUrl: "",
        name: body.name,
        nameWithOwner: body.full_name,
        owner: { id: body.owner.node_id, login: body.owner.login },
        parent: null,
        primaryLanguage: body.language ? { name: body.language } : null,
        pullRequests: { totalCount: at.pulls.filter(({ state }) => state === "open").length },
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
      expect(shown.labels.map((label: Json) => label.name).sort()).toEqual(at.labels.map(({ name }) => name).sort());
      expect(sorted(numbers(shown.milestones))).toEqual(
        sorted(numbers(milestones.filter(({ state }) => state === "open"))),
      );
      const assigned = [...at.issues, ...at.pulls].flatMap((row) => row.assignees.map((user: Json) => user.login));
      expect(shown.assignableUsers.map((user: Json) => user.login)).toEqual(expect.arrayContaining(assigned));
    });

    test("list, and a token that only reads", async () => {
      const [owner = ""] = at.repo.split("/");
      const theirs = at.world.repositories.filter(({ fullName }) => fullName.startsWith(`${owner}/`));
      const [listed, reading] = await Promise.all([
        at.json(["repo", "list", owner, "--json", "nameWithOwner"]),
        at.json(["repo", "view", at.repo, "--json", "viewerPermission,viewerCanAdminister"], {
          token: at.world.readToken,
        }),
      ]);
      expect(listed.map((one: Json) => one.nameWithOwner).sort()).toEqual(
        theirs.map(({ fullName }) => fullName).sort(),
      );
      expect(reading).toEqual({ viewerPermission: "READ", viewerCanAdminister: false });
    });
  });

  describe("issue", () => {
    test("list, by each filter", async () => {
      const open = at.issues.filter(({ state }) => state === "open");
      const label = mostCommon(open.flatMap(labelNames));
      const other = mostCommon(
        open
          .filter((row) => labelNames(row).includes(label))
          .flatMap((row) => labelNames(row).filter((name) => name !== label)),
      );
      const assignee = mostCommon(at.issues.flatMap((row) => row.assignees.map((user: Json) => user.login)));
      const author = mostCommon(at.issues.map(({ user }) => login(user)).filter(Boolean));
      const milestone = mostCommon(at.issues.flatMap((row) => row.milestone?.title ?? []));
      const mentioned = mostCommon(
        at.issues.flatMap((row) => [...(row.body ?? "").matchAll(/cc @([\w-]+)/g)].map(([, name]) => name as string)),
      );
      const mentioning = (await at.all(`/repos/${at.repo}/issues?state=all&mentioned=${mentioned}`)).filter(
        (row) => !row.pull_request,
      );
      const oldest = [...at.issues].sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
      const cases: [filter: string[], wanted: Json[], isOrdered?: boolean][] = [
        [[], open],
        [["--state", "all"], at.issues],
        [["--state", "closed"], at.issues.filter(({ state }) => state === "closed")],
        [["--label", label], open.filter((row) => labelNames(row).includes(label))],
        [
          ["--label", label, "--label", other],
          open.filter((row) => labelNames(row).includes(label) && labelNames(row).includes(other)),
        ],
        [
          ["--assignee", assignee, "--state", "all"],
          at.issues.filter((row) => row.assignees.some((user: Json) => user.login === assignee)),
        ],
        [["--author", author, "--state", "all"], at.issues.filter(({ user }) => login(user) === author)],
        [["--milestone", milestone, "--state", "all"], at.issues.filter((row) => row.milestone?.title === milestone)],
        [["--mention", mentioned, "--state", "all"], mentioning],
        [
          ["--search", "no:assignee sort:created-asc", "--state", "all"],
          oldest.filter((row) => row.assignees.length === 0),
          true,
        ],
        [
          ["--search", `author:${author} is:closed`, "--state", "all"],
          at.issues.filter((row) => login(row.user) === author && row.state === "closed"),
        ],
      ];
      await Promise.all(
        cases.map(async ([filter, wanted, isOrdered]) => {
          const found = numbers(
            await at.json(["issue", "list", "-R", at.repo, "--limit", "200", "--json", "number", ...filter]),
          );
          expect(wanted.length, filter.join(" ")).toBeGreaterThan(0);
          if (isOrdered) expect(found, filter.join(" ")).toEqual(numbers(wanted));
          else expect(sorted(found), filter.join(" ")).toEqual(sorted(numbers(wanted)));
        }),
      );
      const five = oldest.slice(0, 5);
      const limit = ["--state", "all", "--limit", "5", "--json", "number"];
      const [newest, first] = await Promise.all([
        at.json(["issue", "list", "-R", at.repo, ...limit]),
        at.json(["issue", "list", "-R", at.repo, "--search", "sort:created-asc", ...limit]),
      ]);
      expect(numbers(newest)).toEqual(newestFirst(at.issues).slice(0, 5));
      expect(numbers(first)).toEqual(numbers(five));
    });

    test("list and view, in words", async () => {
      const open = at.issues.filter(({ state }) => state === "open");
      const byNumber = new Map(open.map((row) => [row.number, row]));
      const listed = await at.printed(["issue", "list", "-R", at.repo, "--limit", "200"]);
      expect(lines(listed)).toEqual(
        newestFirst(open).map((number) => {
          const row = byNumber.get(number);
          return [number, "OPEN", row.title.trim(), labelsAsPrinted(listed, row), time(row.updated_at)].join("\t");
        }),
      );
      const commented = at.issues.find((row) => row.comments > 1) ?? at.issues[0];
      const [viewed, talk] = await Promise.all([
        at.printed(["issue", "view", String(commented.number), "-R", at.repo]),
        at.printed(["issue", "view", String(commented.number), "-R", at.repo, "--comments"]),
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
      const said = at.comments.filter((row) => row.issue_url.endsWith(`/issues/${commented.number}`));
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
      const listed = await at.json([
        "issue",
        "list",
        "-R",
        at.repo,
        "--state",
        "all",
        "--limit",
        "200",
        "--json",
        fields,
      ]);
      expect(listed).toHaveLength(at.issues.length);
      const byNumber = new Map(at.issues.map((row) => [row.number, row]));
      for (const shown of listed) expect(comparable(shown)).toEqual(asShown(byNumber.get(shown.number)));
      const reacted = at.issues.find((row) => row.reactions?.total_count > 0) ?? at.issues[0];
      const viewed = await at.json(["issue", "view", String(reacted.number), "-R", at.repo, "--json", fields]);
      expect(comparable(viewed)).toEqual(asShown(reacted));
      const refused = await at.gh(["issue", "view", "99999", "-R", at.repo]);
      expect(refused.err).toContain("Could not resolve to an issue or pull request with the number of 99999.");
    });
  });

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
    const said = at.comments.filter((one) => one.issue_url.endsWith(`/issues/${row.number}`));
    return {
      author: jsonLogin(row.user),
      labels: labelNames(row).sort(),
      assignees: row.assignees.map((user: Json) => user.login),
      comments: said.map((one) => [
        login(one.user),
        one.author_association,
        printable(one.body),
        one.created_at,
        one.user?.id === at.world.userId,
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
});
