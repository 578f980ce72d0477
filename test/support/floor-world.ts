import type { Simulator } from "../../src/simulator/control/running.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import * as faker from "../../src/simulator/world/faker.ts";
import { type Random, seededRandom } from "../../src/simulator/world/random.ts";
import {
  GHOST_ID,
  type Issue,
  type PullIssue,
  type Repository,
  type Review,
  type User,
} from "../../src/simulator/world/records.ts";
import { isPull, type World } from "../../src/simulator/world/world.ts";

/**
 * How many resources of each kind the repository has. The numbers are exact, so the least that it can cost is known.
 */
export interface FloorSize {
  issues: number;
  pulls: number;
  comments: number;
  reviewComments: number;
  reviews: number;
}

/** The size at which Tain's cost is compared with the best known cost of others. */
export const fullSize: FloorSize = {
  issues: 10_000,
  pulls: 5_000,
  comments: 60_000,
  reviewComments: 20_000,
  reviews: 15_000,
};

/** The full size, divided by `divisor`. */
export function sizeDividedBy(divisor: number): FloorSize {
  const entries = Object.entries(fullSize).map(([name, count]) => [name, count / divisor]);
  return Object.fromEntries(entries) as unknown as FloorSize;
}

/** GitHub docs: a page holds at most a hundred rows. */
const PAGE = 100;

/**
 * The least that any client has to ask for: the pages of each list, the repository itself, and in GraphQL a point for
 * the reviews of a hundred pull requests.
 */
export function floorOf({ issues, pulls, comments, reviewComments }: FloorSize): { requests: number; points: number } {
  const pagesOf = (count: number) => Math.ceil(count / PAGE);
  const lists = [issues + pulls, pulls, comments, reviewComments].map(pagesOf);
  const labelsMilestonesRepository = 3;
  return { requests: lists.reduce((sum, count) => sum + count, labelsMilestonesRepository), points: pagesOf(pulls) };
}

/**
 * One repository of exactly this size, which costs as much to copy as a real one. An account that is deleted wrote one
 * comment or review in a hundred, and did one merge in twenty. Few threads are long, and nothing has more than a page
 * of children.
 */
export function fillFloorWorld({ world }: Pick<Simulator, "world">, size: FloorSize, seed = 29): Repository {
  const { issues, pulls } = size;
  const { repositories } = generateWorld(world, {
    seed,
    repositories: 1,
    issues,
    pulls,
    commentsPerIssue: 0,
    reviewsPerPull: 0,
  });
  const repository = repositories[0] as Repository;
  const random = seededRandom(seed + 1);
  const all = [...repository.rows.issuesByCreated.ascending()];
  const people = [...world.users.values()].filter((user) => user.type === "User" && user.id !== GHOST_ID);
  addRemarks(world, random, people, size, all);
  return repository;
}

function addRemarks(world: World, random: Random, people: User[], size: FloorSize, all: Issue[]): void {
  const someone = () => (random.chance(0.01) ? GHOST_ID : random.pick(people).id);
  const text = (issue: Issue) =>
    faker.reply(random, { logins: people.map((user) => user.login), lastNumber: issue.number - 1 });
  const latest = new Map<Issue, number>();
  for (const issue of placesFor(random, all, size.comments)) {
    // In a recorded repository two of 2,363 comments were written in one second. All comments of a review are submitted
    // in one.
    const createdAt = Math.min(world.now(), (latest.get(issue) ?? issue.createdAt) + random.int(30, 600));
    latest.set(issue, createdAt);
    world.addComment({ issue, authorId: someone(), body: text(issue), createdAt });
  }
  const pulls = all.filter(isPull);
  const reviews: { issue: PullIssue; review: Review }[] = placesFor(random, pulls, size.reviews).map((issue) => ({
    issue,
    review: world.addReview({
      issue,
      authorId: someone(),
      state: random.pick(["APPROVED", "APPROVED", "COMMENTED", "CHANGES_REQUESTED", "DISMISSED"] as const),
      body: random.chance(0.5) ? "" : text(issue),
      createdAt: issue.createdAt + 120,
      submittedAt: issue.createdAt + 120,
    }),
  }));
  const room = new Map<Issue, number>();
  for (let left = size.reviewComments; left > 0; ) {
    const { issue, review } = random.pick(reviews);
    const taken = room.get(issue) ?? 0;
    if (taken === PAGE) continue;
    room.set(issue, taken + 1);
    left -= 1;
    world.addReviewComment({
      issue,
      reviewId: review.id,
      authorId: random.chance(0.02) ? null : someone(),
      body: faker.reviewNote(random),
      path: faker.filePath(random),
      diffHunk: "@@ -1,2 +1,2 @@\n-  return open;\n+  return open - pool.idle;",
      position: 1,
      originalPosition: 1,
      line: 2,
      originalLine: 2,
      commitId: issue.pull.head.sha,
      createdAt: issue.createdAt + 180,
    });
  }
}

/**
 * Answers a row for each of `count` children, in the order of the rows. Few rows get many, some get none, and none gets
 * more than a page.
 */
function placesFor<Row extends Issue>(random: Random, rows: readonly Row[], count: number): Row[] {
  const taken = new Map<Row, number>();
  for (let left = count; left > 0; ) {
    const row = rows[Math.floor(random.next() ** 2 * rows.length)] as Row;
    const has = taken.get(row) ?? 0;
    const more = Math.min(left, PAGE - has, random.int(1, 6));
    taken.set(row, has + more);
    left -= more;
  }
  return rows.flatMap((row) => Array.from({ length: taken.get(row) ?? 0 }, () => row));
}
