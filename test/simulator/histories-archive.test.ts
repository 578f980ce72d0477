import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { loadHistory } from "../../src/simulator/generate/histories.ts";
import { isPull, World } from "../../src/simulator/world/world.ts";
import { findRecording } from "../support/recording.ts";
import { openGraphql } from "./graphql-world.ts";
import { expectConsistent } from "./world-truth.ts";

const { path: FILE, exists, reason } = findRecording("tls13-spec-history.json.gz");

describe.skipIf(!exists)(`a real repository's archive ${reason}`, async () => {
  if (!exists) return test("has nothing to load");
  const archive = JSON.parse(gunzipSync(readFileSync(FILE)).toString("utf8"));
  const world = new World({ seed: 1 });
  const loaded = await loadHistory(world, FILE);
  const { repository } = loaded;
  const rows = [...repository.rows.issuesByCreated.ascending()];

  test("every row is there", () => {
    expect(loaded).toMatchObject({ issues: 446, pulls: 998, comments: 2_363, reviews: 979, reviewComments: 1_306 });
    expect(rows.filter((row) => !row.pull)).toHaveLength(446);
    expect(rows.filter((row) => row.pull?.mergedAt != null)).toHaveLength(725);
    expect(rows.filter((row) => row.pull && row.pull.mergedAt === null && row.state === "closed")).toHaveLength(273);
    expect(rows.filter((row) => row.pull && row.pull.head.repositoryId === null)).toHaveLength(108);
    expect(rows.filter((row) => row.body === null)).toHaveLength(326);
    expect(repository.rows.labels.size).toBe(21);
    const states = new Map<string, number>();
    for (const review of world.reviews.values()) states.set(review.state, (states.get(review.state) ?? 0) + 1);
    expect(Object.fromEntries(states)).toEqual({ COMMENTED: 774, APPROVED: 169, CHANGES_REQUESTED: 36 });
    expect(new Set(rows.map((row) => row.id)).size).toBe(1_444);
    expect(repository.lastNumber).toBe(1_454);
    expectConsistent(world);
  });

  test("node ids of both generations come out as they went in", () => {
    for (const row of [...archive.issues, ...archive.pulls]) {
      const issue = world.issue(repository, row.number);
      const id =
        issue &&
        (isPull(issue)
          ? world.nodeId("PullRequest", { id: issue.pull.id, createdAt: issue.createdAt }, repository.id)
          : world.nodeId("Issue", issue, repository.id));
      expect(id).toBe(row.id);
      for (const review of row.reviews ?? []) {
        const found =
          issue && isPull(issue)
            ? issue.pull.reviews.map((one) => world.nodeId("PullRequestReview", one, repository.id))
            : [];
        expect(found).toContain(review.id);
      }
    }
  });

  test("asked by GraphQL, the archive comes back word for word", async () => {
    const at = openGraphql({ world });
    const query = `query ($number: Int!) { repository(owner: "tlswg", name: "tls13-spec") { row: issueOrPullRequest(number: $number) {
      ... on Issue { ...f closedAt } ... on PullRequest { mergedAt mergedBy { login } mergeCommit { oid } baseRefName baseRefOid headRefName headRefOid headRepository { nameWithOwner } closedAt
        reviews(first: 100) { nodes { id state body createdAt author { login } comments(first: 100) { nodes { originalPosition body createdAt updatedAt } } } } }
      ... on PullRequest { number id title url author { login } authorAssociation body createdAt updatedAt labels(first: 50) { nodes { name } } assignees(first: 50) { nodes { login } } comments(first: 100) { nodes { author { login } authorAssociation body createdAt updatedAt } } pullState: state } } } }
      fragment f on Issue { number id title url author { login } authorAssociation body createdAt updatedAt labels(first: 50) { nodes { name } } assignees(first: 50) { nodes { login } } comments(first: 100) { nodes { author { login } authorAssociation body createdAt updatedAt } } state }`;
    const sample = [...archive.issues, ...archive.pulls].filter(
      (row) => row.number % 5 === 0 && row.comments.length <= 100,
    );
    for (const row of sample) {
      const reply = await at.ask(query, { number: row.number });
      expect(reply.errors).toBeUndefined();
      const { row: shown } = reply.data.repository;
      const flat = {
        ...shown,
        state: shown.state ?? shown.pullState,
        author: shown.author.login,
        labels: shown.labels.nodes.map((label: { name: string }) => label.name).sort(),
        assignees: shown.assignees.nodes.map((user: { login: string }) => user.login),
        comments: shown.comments.nodes.map((comment: { author: { login: string } }) => ({
          ...comment,
          author: comment.author.login,
        })),
      };
      for (const field of [
        "number",
        "id",
        "title",
        "url",
        "state",
        "author",
        "authorAssociation",
        "assignees",
        "body",
        "createdAt",
        "updatedAt",
        "closedAt",
        "comments",
      ]) {
        expect(flat[field], `#${row.number} ${field}`).toEqual(row[field]);
      }
      expect(flat.labels).toEqual([...row.labels].sort());
      if (!row.reviews) continue;
      expect(shown).toMatchObject({
        mergedAt: row.mergedAt,
        mergeCommit: row.mergeCommit,
        baseRefName: row.baseRefName,
        headRefOid: row.headRefOid,
      });
      expect(shown.headRepository?.nameWithOwner ?? null).toBe(row.headRepository);
      expect(shown.mergedBy?.login ?? null).toBe(row.mergedBy);
      for (const review of row.reviews) {
        const found = shown.reviews.nodes.find((one: { id: string }) => one.id === review.id);
        expect(found).toMatchObject({
          state: review.state,
          body: review.body,
          createdAt: review.createdAt,
          author: { login: review.author },
        });
        expect(found.comments.nodes.length).toBe(review.comments.length);
        expect(found.comments.nodes).toEqual(expect.arrayContaining(review.comments));
      }
    }
  });

  test("what is invented is invented the same way each time", async () => {
    const again = new World({ seed: 1, clock: world.clock });
    await loadHistory(again, FILE);
    const comments = (of: World) =>
      [...of.comments.values()].map((comment) => [comment.id, comment.createdAt, comment.body]);
    expect(comments(again)).toEqual(comments(world));
  });

  test("twice in one world is refused", async () => {
    await expect(loadHistory(world, FILE)).rejects.toThrow("tlswg/tls13-spec is in this world already");
  });
});

test("a file that is no archive is refused with what it should hold", async () => {
  const folder = await mkdtemp(join(tmpdir(), "history-"));
  try {
    const file = join(folder, "x.json");
    await writeFile(file, '{"repo": "a/b"}');
    await expect(loadHistory(new World(), file)).rejects.toThrow(
      `${file} is no archive of a repository: it should hold {repo, labels, issues, pulls}`,
    );
    await expect(loadHistory(new World(), join(folder, "absent.json"))).rejects.toThrow("ENOENT");
  } finally {
    await rm(folder, { recursive: true });
  }
});
