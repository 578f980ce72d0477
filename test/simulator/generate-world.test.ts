import { describe, expect, test } from "vitest";
import { type GenerateOptions, generateWorld } from "../../src/simulator/generate/generate.ts";
import { SettableClock } from "../../src/simulator/world/clock.ts";
import { GHOST_ID, type Issue, type PullIssue } from "../../src/simulator/world/records.ts";
import { isPull, World } from "../../src/simulator/world/world.ts";
import { wholeTruth } from "./world-truth.ts";

const NOON = Date.UTC(2026, 9, 1, 12);

function generate(options: Partial<GenerateOptions> = {}) {
  const world = new World({ seed: 5, clock: new SettableClock(NOON) });
  const heard: string[] = [];
  world.onEvent((event) => heard.push(event.event));
  const generated = generateWorld(world, { seed: 5, repositories: 4, issues: 600, ...options });
  return { world, heard, generated };
}

test("the same seeds give the same world, another seed another", () => {
  const first = wholeTruth(generate().world);
  expect(wholeTruth(generate().world)).toBe(first);
  expect(wholeTruth(generate({ seed: 6 }).world)).not.toBe(first);
});

test("makes exactly as many as asked, and tells no events", () => {
  const { world, heard, generated } = generate({ repositories: 3, issues: 100, pulls: 31 });
  expect(generated).toMatchObject({ issues: 100, pulls: 31, comments: world.comments.size });
  expect(generated.repositories).toHaveLength(3);
  expect([...world.issues.values()].filter(isPull)).toHaveLength(31);
  expect(heard).toEqual([]);
});

test.each([
  [{ repositories: 0 }, "repositories must be at least 1, not 0"],
  [{ issues: -1 }, "issues must be at least 0, not -1"],
  [{ issues: Number.NaN }, "issues must be at least 0, not NaN"],
])("refuses %j", (options, message) => {
  expect(() => generate(options)).toThrow(message);
});

test("deployments are made only when asked for, and change nothing else but ids", () => {
  const code = { branches: 2, releases: 3 };
  const without = generate({ code });
  const count = (world: World) => [world.code.deployments.size, world.code.deploymentStatuses.size];
  expect(count(without.world)).toEqual([0, 0]);
  expect(count(generate({ code: { ...code, deployments: 0 } }).world)).toEqual([0, 0]);
  const { world, generated, heard } = generate({ code: { ...code, deployments: 12 } });
  expect(heard).toEqual([]);
  expect(world.code.deployments.size).toBe(12 * generated.repositories.length);
  const deployments = [...world.code.deployments.values()];
  const environments = new Set(deployments.map(({ environment }) => environment));
  expect(environments).toEqual(new Set(["production", "staging", "review/7"]));
  for (const { createdAt, updatedAt, statuses, repository } of deployments) {
    expect(createdAt).toBeGreaterThan(repository.createdAt);
    expect(updatedAt).toBe(statuses.at(-1)?.createdAt ?? createdAt);
    expect(updatedAt).toBeLessThanOrEqual(world.now());
  }
  const states = new Set([...world.code.deploymentStatuses.values()].map(({ state }) => state));
  expect([...states]).toEqual(expect.arrayContaining(["success", "inactive"]));
  const texts = (one: World) => [...one.issues.values()].map(({ title, createdAt }) => [title, createdAt]);
  expect(texts(world)).toEqual(texts(without.world));
});

test("runs of workflows are made only when asked for, have ended, and change nothing else but ids", () => {
  const without = generate({ code: {} });
  const count = ({ code }: World) => [code.workflows.size, code.workflowRuns.size, code.workflowJobs.size];
  expect(count(without.world)).toEqual([0, 0, 0]);
  const { world, generated, heard } = generate({ code: { workflowRuns: 12 } });
  expect(heard).toEqual([]);
  expect(world.code.workflowRuns.size).toBe(12 * generated.repositories.length);
  for (const { jobs, status, conclusion, createdAt, updatedAt } of world.code.workflowRuns.values()) {
    expect([jobs.length > 0, status, conclusion === null]).toEqual([true, "completed", false]);
    expect(updatedAt).toBeGreaterThanOrEqual(createdAt);
    expect(updatedAt).toBeLessThanOrEqual(world.now());
  }
  const texts = (one: World) => [...one.issues.values()].map(({ title, createdAt }) => [title, createdAt]);
  expect(texts(world)).toEqual(texts(without.world));
});

test("an empty repository is possible", () => {
  expect(generate({ repositories: 1, issues: 0, pulls: 0 }).world.issues.size).toBe(0);
});

describe("what a mirror must survive occurs", () => {
  const { world, generated } = generate();
  const issues = [...world.issues.values()];
  const pulls = issues.filter(isPull) as PullIssue[];
  const bodies = [
    ...issues.map((issue) => issue.body ?? ""),
    ...[...world.comments.values()].map((comment) => comment.body),
  ];
  const some = <Row>(rows: Iterable<Row>, test: (row: Row) => boolean) => expect([...rows].some(test)).toBe(true);

  test.each<[string, () => void]>([
    ["NUL in bodies", () => some(bodies, (body) => body.includes("\u0000"))],
    ["lone surrogates", () => some(bodies, (body) => !body.isWellFormed())],
    ["characters beyond the BMP", () => some(bodies, (body) => /[\u{10000}-\u{10FFFF}]/u.test(body))],
    ["emoji in titles", () => some(issues, (issue) => /\p{Extended_Pictographic}/u.test(issue.title))],
    ["other scripts", () => some(issues, (issue) => /[\u0400-\u04ff\u3040-\u30ff\u4e00-\u9fff]/.test(issue.title))],
    ["titles with outer blanks", () => some(issues, (issue) => issue.title !== issue.title.trim())],
    ["empty bodies", () => some(issues, (issue) => issue.body === null)],
    ["CRLF", () => some(bodies, (body) => body.includes("\r\n"))],
    [
      "code, task lists, links, mentions, references",
      () => {
        for (const pattern of [/^```/m, /^- \[x\]/m, /\]\(https:/, /@\w/, /#\d/])
          some(bodies, (body) => pattern.test(body));
      },
    ],
    ["long bodies", () => some(bodies, (body) => body.length > 5_000)],
    [
      "ghost authors, closers, commenters",
      () => {
        some(issues, (issue) => issue.authorId === GHOST_ID);
        some(issues, (issue) => issue.closedById === GHOST_ID);
        some(world.comments.values(), (comment) => comment.authorId === GHOST_ID);
        some(world.reviewComments.values(), (comment) => comment.authorId === null);
      },
    ],
    ["bots", () => some(issues, (issue) => world.user(issue.authorId ?? 0).type === "Bot")],
    [
      "heads whose fork is gone, with and without their user",
      () => {
        some(pulls, (issue) => issue.pull.head.repositoryId === null && issue.pull.head.userId !== null);
        some(pulls, (issue) => issue.pull.head.repositoryId === null && issue.pull.head.userId === null);
      },
    ],
    [
      "heads in forks",
      () =>
        some(
          pulls,
          (issue) => issue.pull.head.repositoryId !== null && issue.pull.head.repositoryId !== issue.repository.id,
        ),
    ],
    [
      "drafts, merged, closed unmerged",
      () => {
        some(pulls, (issue) => issue.pull.draft && issue.state === "open");
        some(pulls, (issue) => issue.pull.mergedAt !== null);
        some(pulls, (issue) => issue.state === "closed" && issue.pull.mergedAt === null);
      },
    ],
    [
      "all state reasons",
      () => {
        for (const reason of ["completed", "not_planned", "duplicate", "reopened", null])
          some(issues, (issue) => issue.stateReason === reason);
      },
    ],
    [
      "locked with and without reason, pinned",
      () => {
        some(issues, (issue) => issue.locked && issue.lockReason !== null);
        some(issues, (issue) => issue.pinned);
      },
    ],
    [
      "reviews in all states",
      () => {
        for (const state of ["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED", "PENDING"])
          some(world.reviews.values(), (review) => review.state === state);
      },
    ],
    [
      "answers to review comments",
      () => some(world.reviewComments.values(), (comment) => comment.inReplyToId !== null),
    ],
    ["outdated review comments", () => some(world.reviewComments.values(), (comment) => comment.line === null)],
    [
      "labels with emoji, slash, percent",
      () => {
        for (const pattern of [/\p{Extended_Pictographic}/u, /\//, /%/])
          some(world.labels.values(), (label) => pattern.test(label.name));
      },
    ],
    [
      "milestones with and without due date, open and closed",
      () => {
        for (const state of ["open", "closed"])
          some(world.milestones.values(), (milestone) => milestone.state === state);
        some(world.milestones.values(), (milestone) => milestone.dueOn !== null);
        some(world.milestones.values(), (milestone) => milestone.dueOn === null);
      },
    ],
    [
      "a renamed, a private and an archived repository, an organisation",
      () => {
        const [first, renamed, hidden, archived] = generated.repositories;
        expect(world.user(first?.ownerId ?? 0).type).toBe("Organization");
        const oldName = renamed?.name.replace(/-ng$/, "") ?? "";
        expect(world.repositoryByName(world.user(renamed?.ownerId ?? 0).login, oldName)).toEqual({
          repository: renamed,
          moved: true,
        });
        expect(hidden?.visibility).toBe("private");
        expect(archived?.archived).toBe(true);
      },
    ],
    [
      "both generations of node ids",
      () => {
        some(issues, (issue) => issue.createdAt < world.legacyNodeIdsBefore);
        some(issues, (issue) => issue.createdAt >= world.legacyNodeIdsBefore);
      },
    ],
    [
      "many rows that share one updated_at",
      () => {
        const counts = new Map<number, number>();
        for (const issue of generated.repositories[0]?.rows.issuesByCreated.ascending() ?? [])
          counts.set(issue.updatedAt, (counts.get(issue.updatedAt) ?? 0) + 1);
        expect(Math.max(...counts.values())).toBeGreaterThan(10);
      },
    ],
    [
      "few threads that are long",
      () => {
        const lengths = issues.map((issue) => issue.thread.length).sort((a, b) => b - a);
        expect(lengths[0]).toBeGreaterThan(20);
        expect(lengths[Math.floor(lengths.length / 2)]).toBeLessThan(4);
      },
    ],
  ])("%s", (_, check) => check());
});

describe("the world is consistent", () => {
  const { world } = generate();
  const now = world.now();
  test("times are in order: nothing before its issue, nothing after now, updated covers all that moves it", () => {
    const latest = (issue: Issue) =>
      Math.max(
        issue.createdAt,
        issue.closedAt ?? 0,
        issue.editedAt ?? 0,
        ...issue.thread.map((comment) => comment.createdAt),
      );
    for (const issue of world.issues.values()) {
      expect(issue.updatedAt).toBeGreaterThanOrEqual(latest(issue));
      expect(issue.updatedAt).toBeLessThanOrEqual(now);
      for (const comment of issue.thread) expect(comment.createdAt).toBeGreaterThanOrEqual(issue.createdAt);
    }
  });
  test("ids of comments grow with time within a repository", () => {
    for (const repository of world.repositories.values()) {
      const times = [...repository.rows.commentsById.ascending()].map((comment) => comment.createdAt);
      expect(times).toEqual([...times].sort((a, b) => a - b));
    }
  });
  test("bodies keep within what the service accepts", () => {
    for (const issue of world.issues.values()) expect((issue.body ?? "").length).toBeLessThanOrEqual(65_536);
  });
  test("broken text can be left out", () => {
    const clean = generate({ brokenText: false }).world;
    for (const issue of clean.issues.values())
      expect((issue.body ?? "").isWellFormed() && !issue.body?.includes("\u0000")).toBe(true);
  });
});
