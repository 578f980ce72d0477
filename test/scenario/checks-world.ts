import { sql } from "../../db/sql.ts";
import type { Fields } from "../../src/json.ts";
import { pushToPull } from "../../src/simulator/changes/pulls.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { dispatchMarks } from "../../src/sync/marks/marks.ts";
import { type ApiWorld, openApiWorld } from "../api/api-world.ts";
import { askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { markChecksDue } from "../support/due.ts";
import { forge } from "../support/forging.ts";
import { type CheckedUpstream, openCheckedUpstream } from "../support/upstream-checks.ts";
import { untilIdle } from "../support/world.ts";

export const DONE = { status: "completed", conclusion: "success", completed_at: "2026-01-01T00:05:00Z" };

export type ChecksWorld = Awaited<ReturnType<typeof openChecksWorld>>;

/** A mirror of a repository's checks. Its upstream gives the answers about commits that a test has put there. */
export async function openChecksWorld() {
  await using opening = new AsyncDisposableStack();
  const upstream: CheckedUpstream = opening.use(await openCheckedUpstream());
  const world: ApiWorld = opening.use(
    await openApiWorld({
      fill: async (filled) => {
        generateWorld(filled, { seed: 7, repositories: 1, issues: 4, pulls: 12 });
        for (const one of filled.repositories.values()) one.visibility = "private";
      },
      upstreamUrl: upstream.url,
      env: { MIRROR: "checks" },
    }),
  );
  upstream.target = world.upstream.url;
  const [found] = world.repositories;
  if (!found) throw new Error("There is no repository");
  const repository = found;
  /** The repository as webhooks represent it. */
  const shownRepository: Fields = (
    await askAt(upstream.url, "GET", `/repos/${repository.fullName}`, { token: UPSTREAM_TOKEN })
  ).body;
  let pulls: { number: number }[] = (await world.get(`/repos/${repository.fullName}/pulls?per_page=100`)).body;
  upstream.heads = () => pulls.map(({ number }) => pullAt(number).pull.head.sha);
  world.work();

  const base = () => `${upstream.url}/repos/${repository.fullName}`;
  const app = {
    id: 7,
    slug: "linter",
    node_id: "A_7",
    name: "Linter",
    owner: null,
    permissions: { checks: "write" },
    events: [],
  };

  function run(sha: string, id: number, own: Fields = {}): Fields & { id: number } {
    return {
      ...{ id, name: "build", node_id: `CR_${id}`, head_sha: sha, external_id: "", url: `${base()}/check-runs/${id}` },
      ...{
        html_url: `https://example.com/runs/${id}`,
        details_url: "https://example.com",
        status: "queued",
        conclusion: null,
      },
      ...{ started_at: "2026-01-01T00:00:00Z", completed_at: null, check_suite: { id: 70 }, app, pull_requests: [] },
      output: {
        title: null,
        summary: null,
        text: null,
        annotations_count: 0,
        annotations_url: `${base()}/check-runs/${id}/annotations`,
      },
      ...own,
    };
  }

  function suite(sha: string, id: number): Fields & { id: number } {
    return {
      ...{ id, node_id: `CS_${id}`, head_branch: "topic", head_sha: sha, status: "completed", conclusion: "success" },
      ...{
        url: `${base()}/check-suites/${id}`,
        before: null,
        after: sha,
        pull_requests: [],
        app,
        repository: shownRepository,
      },
      ...{ created_at: "2026-01-01T00:00:00Z", updated_at: "2026-01-01T00:05:00Z", latest_check_runs_count: 1 },
      ...{ check_runs_url: `${base()}/check-suites/${id}/check-runs`, head_commit: { id: sha, message: "change" } },
    };
  }

  function status(sha: string, id: number, state: string, own: Fields = {}): Fields & { id: number } {
    const at = `2026-01-01T00:00:${String(id % 60).padStart(2, "0")}Z`;
    return {
      ...{ url: `${base()}/statuses/${sha}`, avatar_url: null, id, node_id: `SC_${id}`, state, description: null },
      ...{ target_url: null, context: "ci", created_at: at, updated_at: at, creator: null, ...own },
    };
  }

  async function deliver(event: string, payload: Fields): Promise<string | null | undefined> {
    const { ctx, url } = world;
    return (await forge({ ctx, url, settle }, event, { ...payload, repository: shownRepository }))?.reason;
  }

  const settle = () => untilIdle(world.ctx);

  /** Moves the mirror's clock and upstream's. */
  function advance(ms: number): void {
    world.advance(ms);
    (world.upstream.world.clock as SettableClock).advance(ms);
  }

  /** Lets the time pass, then does the scheduler's next round and all work that it asks for. */
  async function pass(ms: number): Promise<void> {
    advance(ms);
    // These tests ask more often than the pace of common questions allows.
    await world.ctx.db.query(sql`delete from upkeep where task = 'common questions'`);
    await markChecksDue(world.ctx);
    await world.ctx.queues.refresh.clean(0, 1_000, "delayed");
    await dispatchMarks(world.ctx);
    await settle();
  }

  /**
   * Counts the heads that tests have pushed to pull requests, so that each test gets a head of its own.
   */
  let next = 0;
  const nextSha = () => String(next + 1).padStart(40, "a");
  const takeSha = () => {
    const sha = nextSha();
    next += 1;
    return sha;
  };
  /** The pull request whose turn it is, or the one so many places after it. */
  const upcoming = (after = 0) => pulls[(next + after) % pulls.length]?.number ?? 0;
  async function newHead({ action = "synchronize", lateMs = 0 } = {}): Promise<{ sha: string; number: number }> {
    const [number, sha] = [upcoming(), takeSha()];
    const pull = pullAt(number);
    // Two changes within a second could not be told apart.
    advance(2_000);
    pushToPull(world.upstream.world, pull.repository.ownerId, pull, sha);
    advance(lateMs);
    await tell(action, number);
    return { sha, number };
  }

  function openPulls({ rows }: Repository): PullIssue[] {
    return [...rows.issuesByCreated.ascending()].filter((one) => isPull(one)).filter(({ state }) => state === "open");
  }

  function pullAt(number: number): PullIssue {
    const [owner = "", name = ""] = repository.fullName.split("/");
    const known = world.upstream.world.repositoryByName(owner, name)?.repository;
    const issue = known && openPulls(known).find((one) => one.number === number);
    if (!issue) throw new Error(`There is no pull request ${number}`);
    return issue;
  }

  /** Takes a closed pull request out, so that its head is not given to another test. */
  const close = (number: number) => {
    pulls = pulls.filter((pull) => pull.number !== number);
  };

  /** Sends the webhook that shows the pull request as upstream has it. */
  async function tell(action: string, number: number): Promise<void> {
    const path = `/repos/${repository.fullName}/pulls/${number}`;
    const { body } = await askAt(upstream.url, "GET", path, { token: UPSTREAM_TOKEN });
    await deliver("pull_request", { action, number, pull_request: body });
  }

  /** A head whose checks were read, and that every replica has. */
  async function readHead(
    ...runs: ((sha: string) => Fields & { id: number })[]
  ): Promise<{ sha: string; number: number }> {
    const sha = nextSha();
    upstream.of(sha).runs.push(...runs.map((make) => make(sha)));
    upstream.of(sha).suites.push(suite(sha, 70));
    const head = await newHead();
    await pass(60_000);
    upstream.asked.length = 0;
    return head;
  }

  const get = (path: string, token = world.readToken) =>
    askAt(world.url, "GET", `/repos/${repository.fullName}${path}`, { token });
  const isPassed = ({ headers }: { headers: Headers }) => headers.has("x-tain-passed-through");
  /** Upstream's value with our address in the place of upstream's. */
  const ours = (value: unknown) => JSON.parse(JSON.stringify(value).replaceAll(upstream.url, world.url));

  const ROLLUP = `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) {
    pullRequest(number: $number) { statusCheckRollup { state contexts(first: 10) {
      totalCount checkRunCountsByState { state count } nodes {
        ... on CheckRun { name status conclusion } ... on StatusContext { context state } } } } } } }`;

  async function rollup(number: number, token = world.readToken) {
    const [owner, name] = repository.fullName.split("/");
    const body = JSON.stringify({ query: ROLLUP, variables: { owner, name, number } });
    const answer = await askAt(world.url, "POST", "/graphql", { token, body });
    return { ...answer, shown: answer.body.data?.repository?.pullRequest?.statusCheckRollup };
  }

  const all = opening.move();
  return {
    ...{ upstream, world, repository, close, run, suite, status, deliver, settle, advance, pass, newHead, base },
    ...{ shownRepository, takeSha, upcoming, pullAt, tell, readHead, get, isPassed, ours, rollup },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
