/** The same as `gh.test.ts`: pull requests, labels, searches and status, writes, and other addresses. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { DEVELOPMENT, ENTERPRISE, hasGh, openGhAtPort80 } from "./gh-runs.ts";
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
  describe("pr", () => {
    const state = (row: Json) => (row.merged_at ? "MERGED" : row.state.toUpperCase());

    test("list, by each filter, and in words", async () => {
      const open = at.pulls.filter((row) => row.state === "open");
      const author = mostCommon(at.pulls.map(({ user }) => login(user)).filter(Boolean));
      const label = mostCommon(at.pulls.flatMap(labelNames));
      const head = open[0]?.head.ref as string;
      const cases: [string[], Json[]][] = [
        [[], open],
        [["--state", "all"], at.pulls],
        [["--state", "merged"], at.pulls.filter((row) => row.merged_at)],
        [["--state", "closed"], at.pulls.filter((row) => row.state === "closed")],
        [["--head", head], open.filter((row) => row.head.ref === head)],
        [["--base", open[0]?.base.ref], open.filter((row) => row.base.ref === open[0]?.base.ref)],
        [["--state", "all", "--label", label], at.pulls.filter((row) => labelNames(row).includes(label))],
        [["--state", "all", "--author", author], at.pulls.filter(({ user }) => login(user) === author)],
        [["--state", "all", "--search", "is:merged sort:created-asc"], at.pulls.filter((row) => row.merged_at)],
      ];
      await Promise.all(
        cases.map(async ([filter, wanted]) => {
          const found = await at.json(["pr", "list", "-R", at.repo, "--limit", "200", "--json", "number", ...filter]);
          expect(wanted.length, filter.join(" ")).toBeGreaterThan(0);
          expect(sorted(numbers(found)), filter.join(" ")).toEqual(sorted(numbers(wanted)));
        }),
      );
      const byNumber = new Map(open.map((row) => [row.number, row]));
      expect(lines(await at.printed(["pr", "list", "-R", at.repo, "--limit", "200"]))).toEqual(
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
      const listed = await at.json(["pr", "list", "-R", at.repo, "--state", "all", "--limit", "200", "--json", fields]);
      expect(sorted(numbers(listed))).toEqual(sorted(numbers(at.pulls)));
      const some = listed.slice(0, 12);
      for (const shown of some) {
        const { body: row } = await at.world.getUpstream(`/repos/${at.repo}/pulls/${shown.number}`);
        const { body: side } = await at.world.getUpstream(`/repos/${at.repo}/issues/${shown.number}`);
        const reviews = await at.all(`/repos/${at.repo}/pulls/${shown.number}/reviews`);
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
          at.comments
            .filter((one) => one.issue_url.endsWith(`/issues/${row.number}`))
            .map((one) => printable(one.body)),
        );
        expect(shown.latestReviews.every((review: Json) => !asked.includes(review.author.login))).toBe(true);
      }
      const [{ number }] = some;
      const { body: row } = await at.world.getUpstream(`/repos/${at.repo}/pulls/${number}`);
      const viewed = await at.printed(["pr", "view", String(number), "-R", at.repo]);
      expect(viewed).toContain(
        `title:\t${row.title}\nstate:\t${row.draft ? "DRAFT" : state(row)}\nauthor:\t${login(row.user)}\n`,
      );
      expect(viewed).toContain(
        `number:\t${number}\nurl:\t${row.html_url}\nadditions:\t${row.additions}\ndeletions:\t${row.deletions}\n`,
      );
      const refused = await at.gh(["pr", "view", String(number), "-R", at.repo, "--json", "files"]);
      expect(refused.err).toContain("The files of this pull request are not mirrored.");
    });
  });

  test("label list, in words and as JSON", async () => {
    const [words, shown] = await Promise.all([
      at.printed(["label", "list", "-R", at.repo, "--limit", "100"]),
      at.json(["label", "list", "-R", at.repo, "--limit", "100", "--json", "name,color,description,isDefault,url"]),
    ]);
    const made = [...at.labels].sort((a, b) => a.id - b.id);
    expect(words).toBe(made.map((row) => `${row.name}\t${row.description ?? ""}\t#${row.color}\n`).join(""));
    expect(shown).toEqual(
      made.map((row) => ({
        color: row.color,
        description: row.description ?? "",
        isDefault: row.default,
        name: row.name,
        url: `https://github.com/${at.repo}/labels/${encodeURIComponent(row.name)}`,
      })),
    );
  });

  test("search issues, prs and repos", async () => {
    const label = mostCommon(at.issues.flatMap(labelNames));
    const author = mostCommon(at.pulls.map(({ user }) => login(user)).filter(Boolean));
    const [owner = ""] = at.repo.split("/");
    const limit = ["--limit", "200"];
    const [found, prs, repos] = await Promise.all([
      at.json([
        "search",
        "issues",
        "--repo",
        at.repo,
        "--label",
        label,
        ...limit,
        "--json",
        "number,title,state,url,isPullRequest,commentsCount",
      ]),
      at.json(["search", "prs", "--repo", at.repo, "--author", author, "--merged", ...limit, "--json", "number,state"]),
      at.json(["search", "repos", "--owner", owner, "--json", "fullName,id,stargazersCount,visibility"]),
    ]);
    const byNumber = (rows: Json[]) => [...rows].sort((a, b) => a.number - b.number);
    expect(byNumber(found)).toEqual(
      byNumber(at.issues.filter((row) => labelNames(row).includes(label))).map((row) => ({
        commentsCount: row.comments,
        isPullRequest: false,
        number: row.number,
        state: row.state,
        title: printable(row.title),
        url: row.html_url,
      })),
    );
    expect(byNumber(prs)).toEqual(
      byNumber(at.pulls.filter((row) => login(row.user) === author && row.merged_at)).map(({ number }) => ({
        number,
        state: "merged",
      })),
    );
    expect(repos.map((one: Json) => one.fullName).sort()).toEqual(
      at.world.repositories
        .map(({ fullName }) => fullName)
        .filter((name) => name.startsWith(`${owner}/`))
        .sort(),
    );
  });

  test("status, pr status and issue status, as a user who has something to do", async () => {
    const open = at.issues.filter(({ state }) => state === "open");
    const name = mostCommon(open.flatMap((row) => row.assignees.map((user: Json) => user.login)));
    const mine = open.filter((row) => row.assignees.some((user: Json) => user.login === name));
    const userId = mine[0]?.assignees.find((user: Json) => user.login === name).id as number;
    const token = await createApiToken(at.world.ctx, { userId, canWrite: false });
    const [all, ofRepository, pulled] = await Promise.all([
      at.printed(["status"], { token }),
      at.printed(["issue", "status", "-R", at.repo], { token }),
      at.printed(["pr", "status", "-R", at.repo], { token }),
    ]);
    const section = (all.split("Assigned Issues")[1] ?? "").split("Review Requests")[0] ?? "";
    for (const { number } of mine.slice(0, 4)) expect(section).toContain(`#${number}`);
    const assigned = (ofRepository.split("Issues assigned to you")[1] ?? "").split("Issues mentioning you")[0] ?? "";
    expect(sorted([...assigned.matchAll(/^ +(\d+)\t/gm)].map(([, number]) => Number(number)))).toEqual(
      sorted(numbers(mine)).slice(0, 10),
    );
    const created = at.pulls.filter((row) => row.state === "open" && login(row.user) === name);
    const shown = (pulled.split("Created by you")[1] ?? "").split("Requesting a code review")[0] ?? "";
    expect(sorted([...shown.matchAll(/^ +(\d+)\t/gm)].map(([, number]) => Number(number)))).toEqual(
      sorted(numbers(created)),
    );
  });

  test("an issue is created, edited, commented on, closed and reopened: upstream has it, and the mirror shows it", async () => {
    const [first, second] = [at.labels[0].name, at.labels[1].name];
    const [someone, other] = (await at.world.get(`/repos/${at.repo}/assignees`)).body
      .filter((user: Json) => user.type === "User")
      .map((user: Json) => user.login);
    const [milestone] = await at.all(`/repos/${at.repo}/milestones`);
    const made = await at.printed([
      ...["issue", "create", "-R", at.repo, "--title", "By gh", "--body", "first\n\nsecond", "--label", first],
      ...["--assignee", someone, "--milestone", milestone.title],
    ]);
    const number = Number(made.trim().split("/").at(-1));
    expect(made.trim()).toBe(`https://github.com/${at.repo}/issues/${number}`);
    const truth = async () => {
      const { body } = await at.world.getUpstream(`/repos/${at.repo}/issues/${number}`);
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

    await at.printed([
      ...["issue", "edit", String(number), "-R", at.repo, "--title", "Edited", "--body", "new", "--add-label", second],
      ...["--remove-label", first, "--add-assignee", other, "--remove-assignee", someone],
    ]);
    const edited = { ...start, title: "Edited", text: "new", labels: [second], assignees: [other] };
    expect(await truth()).toEqual(edited);

    const url = (await at.printed(["issue", "comment", String(number), "-R", at.repo, "--body", "said by gh"])).trim();
    const [comment] = await at.all(`/repos/${at.repo}/issues/${number}/comments`);
    expect([comment.html_url, comment.body]).toEqual([url, "said by gh"]);

    await at.printed(["issue", "close", String(number), "-R", at.repo, "--reason", "not planned"]);
    expect(await truth()).toEqual({ ...edited, state: "closed", reason: "not_planned" });
    const closed = await at.json([
      "issue",
      "view",
      String(number),
      "-R",
      at.repo,
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

    await at.printed(["issue", "reopen", String(number), "-R", at.repo]);
    expect(await truth()).toMatchObject({ state: "open" });
    const reading = await at.gh(["issue", "close", String(number), "-R", at.repo], { token: at.world.readToken });
    expect(reading.status).not.toBe(0);
    expect(await truth()).toMatchObject({ state: "open" });
    await at.readTruth();
  });

  test("at the enterprise addresses, whose features gh asks for first", async () => {
    const host = ENTERPRISE;
    const there = `${host}/${at.repo}`;
    const [user, paged, listed, prs, seen] = await Promise.all([
      at.json(["api", "user"], { host }),
      at.printed(["api", "--paginate", `repos/${at.repo}/issues?state=all&per_page=50`, "--jq", ".[].number"], {
        host,
      }),
      at.json(["issue", "list", "-R", there, "--state", "all", "--limit", "200", "--json", "number,url"], { host }),
      at.json(["pr", "list", "-R", there, "--state", "all", "--limit", "200", "--json", "number"], { host }),
      at.json(["repo", "view", there, "--json", "nameWithOwner"], { host }),
    ]);
    expect(user.url).toBe(`http://${host}/api/v3/users/mirror-owner`);
    expect(sorted(lines(paged).map(Number))).toEqual(sorted(numbers([...at.issues, ...at.pulls])));
    expect(sorted(numbers(listed))).toEqual(sorted(numbers(at.issues)));
    expect(sorted(numbers(prs))).toEqual(sorted(numbers(at.pulls)));
    expect(seen.nameWithOwner).toBe(at.repo);
  });

  test(`at port 80, where gh looks for ${DEVELOPMENT} (skipped where the port is not ours)`, async ({ skip }) => {
    await using own = new AsyncDisposableStack();
    const atPort = await openGhAtPort80(at.world, own);
    if (typeof atPort === "string") return skip(atPort);
    const filter = ["--state", "all", "--limit", "200", "--json", "number"];
    const listed = await atPort(["issue", "list", "-R", at.repo, ...filter]);
    expect(listed.err).toBe("");
    expect(sorted(numbers(JSON.parse(listed.out)))).toEqual(sorted(numbers(at.issues)));
    const paged = await atPort([
      "api",
      "--paginate",
      `repos/${at.repo}/issues?state=all&per_page=50`,
      "--jq",
      ".[].number",
    ]);
    expect(paged.err).toBe("");
    expect(sorted(lines(paged.out).map(Number))).toEqual(sorted(numbers([...at.issues, ...at.pulls])));
  });
});
