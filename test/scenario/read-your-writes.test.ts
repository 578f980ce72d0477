import { expect, test } from "vitest";
import { pushBranch } from "../../src/simulator/changes/pulls.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { type Random, seededRandom } from "../../src/simulator/world/random.ts";
import { scheduleCatchUps } from "../../src/sync/catch-up/catch-up.ts";
import { compare } from "../support/comparison.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { printFigures } from "../support/figures.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

/** How many writes there are: `WRITES=1000 npm test -- test/scenario/read-your-writes` makes more. */
const WRITES = Number(process.env.WRITES ?? 24);
const SEED = Number(process.env.SEED ?? 1);

/** One account may write once a second and 500 times an hour, whichever of its tokens it uses. */
const tokens = Array.from({ length: 40 }, (_, at) => (at === 0 ? UPSTREAM_TOKEN : `${UPSTREAM_TOKEN}-${at}`));

const WEBHOOK_DELAY_MS = 5_000;
const REPLICA_LAG_MS = 2_500;

test("a write is shown by the next read, by REST and GraphQL, and is never taken back", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream, tokens: known }) => {
      generateWorld(upstream, { seed: 5, repositories: 1, issues: 30, pulls: 10 });
      for (const [at, token] of tokens.entries())
        known.create({ token, login: at === 0 ? "mirror-owner" : `writer-${at}`, repositories: "all", write: true });
    },
    simulator: {
      quota: { limits: { core: 1e6, restPointsPerMinute: 1e9, contentPerMinute: 1e9, contentPerHour: 1e9 } },
      worldOptions: { mergeableDelayMs: 20 },
    },
    // A write that could not be stored is logged as an error. The log would explain what is missing below.
    env: { RATE_LIMIT_USER: "0", UPSTREAM_TOKEN: tokens.join(","), LOG_LEVEL: "error" },
  });
  await world.mirror(world.first);
  await world.listen(world.first);
  await world.settleMarks();
  const elsewhere = await world.openSibling();
  const random = seededRandom(SEED);
  world.simulator.setFaults({ lagMs: REPLICA_LAG_MS, webhooks: { delay: 1, delayMs: WEBHOOK_DELAY_MS } });
  // Half of the webhooks have the longest delay, and the others overtake them.
  world.simulator.faults.random = {
    ...random,
    int: (low, high) => (random.chance(0.5) ? high : random.int(low, high)),
  };

  const author = new Author(world, random);
  await author.begin();
  const expectations = new Map<string, Expectation>();
  const failures: string[] = [];
  for (let written = 0; written < WRITES; written++) {
    if (written % 20 === 10) await scheduleCatchUps(world.ctx);
    for (const [key, expectation] of await author.write()) {
      if (expectation === null) expectations.delete(key);
      else expectations.set(key, expectation);
      if (expectation)
        failures.push(...(await missing(`write ${written}, ${key}`, elsewhere, world.token, expectation)));
    }
    const [key, earlier] = random.pick([...expectations]);
    failures.push(...(await missing(`after write ${written}, ${key}`, elsewhere, world.token, earlier)));
  }
  expect(failures).toEqual([]);
  // The webhooks of the last writes arrive meanwhile, and must not take back what was written.
  await world.simulator.quiet();
  await world.settle();
  for (const [key, expectation] of expectations)
    failures.push(...(await missing(`at the end, ${key}`, elsewhere, world.token, expectation)));
  printFigures("writes", { writes: WRITES, missing: failures.length });
  expect(failures).toEqual([]);

  world.simulator.setFaults({});
  await world.settleMarks();
  await world.catchUp();
  await world.settleMarks();
  // A new contributor becomes one in everything that they ever wrote. Nothing that this test asks upstream shows it.
  const { differences } = await compare(
    world.ctx,
    world.simulator,
    world.first,
    (_kind, path) => path === "author_association",
  );
  printFigures("written", { differences: differences.length });
  expect(differences).toEqual([]);
}, 3_600_000);

// biome-ignore lint/suspicious/noExplicitAny: bodies are picked from and compared, not trusted
type Body = any;

/** What a read must show after a write. `graphql` is a selection on the repository. */
interface Expectation {
  rest: string;
  picks: (body: Body) => unknown;
  value: unknown;
  status?: number;
  graphql?: { selection: string; picks: (repository: Body) => unknown; value: unknown };
}

type Shown = [key: string, expectation: Expectation | null][];

async function missing(when: string, url: string, token: string, expectation: Expectation): Promise<string[]> {
  const headers = { authorization: `token ${token}`, "user-agent": "test" };
  const answer = await fetch(url + expectation.rest, { headers });
  const body = (await answer.json()) as Body;
  const found: string[] = [];
  // Reading twice has the process keep the page. So the next read after a write could wrongly come from memory.
  for (let time = 0; time < 2; time++) {
    const again = await fetch(url + expectation.rest, { headers });
    if (JSON.stringify(await again.json()) !== JSON.stringify(body))
      found.push(`${when}: REST ${expectation.rest} shows something else when asked again`);
  }
  const isShown = answer.status === (expectation.status ?? 200);
  const value = isShown && expectation.status === undefined ? expectation.picks(body) : answer.status;
  const wanted = expectation.status ?? expectation.value;
  if (JSON.stringify(value) !== JSON.stringify(wanted))
    found.push(`${when}: REST ${expectation.rest} shows ${JSON.stringify(value)}, not ${JSON.stringify(wanted)}`);
  const { graphql } = expectation;
  if (!graphql) return found;
  const [, owner, name] = expectation.rest.split("/").slice(1);
  const query = `{ repository(owner: "${owner}", name: "${name}") { ${graphql.selection} } }`;
  const asked = await fetch(`${url}/graphql`, { method: "POST", headers, body: JSON.stringify({ query }) });
  const { data, errors } = (await asked.json()) as Body;
  const shown = errors ? errors : graphql.picks(data.repository);
  if (JSON.stringify(shown) !== JSON.stringify(graphql.value))
    found.push(
      `${when}: GraphQL ${graphql.selection} shows ${JSON.stringify(shown)}, not ${JSON.stringify(graphql.value)}`,
    );
  return found;
}

/** Writes through the first server, and knows what reads must show after each write. */
class Author {
  readonly #world: TestWorld;
  readonly #random: Random;
  readonly #issues: number[] = [];
  readonly #pulls: number[] = [];
  readonly #comments = new Map<number, { number: number; id: number }>();
  readonly #counts = new Map<number, number>();
  readonly #labels = new Map<number, Set<string>>();
  #count = 0;
  #milestone = 0;
  #label = "first name";

  constructor(world: TestWorld, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  async begin(): Promise<void> {
    this.#milestone = (await this.#send("POST", "/milestones", { title: "of all" })).number;
    await this.#send("POST", "/labels", { name: this.#label });
    for (const name of ["one", "two", "three"]) await this.#send("POST", "/labels", { name });
    await this.#createIssue();
    await this.#createPull();
  }

  write(): Promise<Shown> {
    const acts: (() => Promise<Shown>)[] = [
      () => this.#createIssue(),
      () => this.#retitle(),
      () => this.#retitle(),
      () => this.#move(),
      () => this.#comment(),
      () => this.#comment(),
      () => this.#editComment(),
      () => this.#deleteComment(),
      () => this.#addLabel(),
      () => this.#addLabel(),
      () => this.#takeLabel(),
      () => this.#lock(),
      () => this.#milestoned(),
      () => this.#assign(),
      () => this.#renameLabel(),
      () => this.#renameMilestone(),
      () => this.#editPull(),
      () => this.#review(),
      () => this.#mutateIssue(),
      () => this.#mutateComment(),
    ];
    // Only few writes are ones that wait for replicas.
    return this.#random.chance(0.03) ? this.#createPull() : this.#random.pick(acts)();
  }

  async #send(method: string, below: string, body?: object): Promise<Body> {
    const { url, token, first } = this.#world;
    const answer = await fetch(`${url}/repos/${first}${below}`, {
      method,
      headers: { authorization: `token ${token}`, "user-agent": "test" },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${below}: ${answer.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  async #mutate(mutation: string, input: object): Promise<void> {
    const { url, token } = this.#world;
    const type = `${mutation.charAt(0).toUpperCase()}${mutation.slice(1)}Input`;
    const query = `mutation($input: ${type}!) { ${mutation}(input: $input) { clientMutationId } }`;
    const answer = await fetch(`${url}/graphql`, {
      method: "POST",
      headers: { authorization: `token ${token}`, "user-agent": "test" },
      body: JSON.stringify({ query, variables: { input } }),
    });
    const { errors } = (await answer.json()) as Body;
    if (errors) throw new Error(`${mutation}: ${JSON.stringify(errors)}`);
  }

  #either(): number {
    return this.#random.pick([...this.#issues, ...this.#pulls]);
  }

  #text(): string {
    return `text ${++this.#count}`;
  }

  #of(number: number, key: string, pick: (issue: Body) => unknown, value: unknown, graphql?: string): Shown[number] {
    const expectation: Expectation = { rest: `/repos/${this.#world.first}/issues/${number}`, picks: pick, value };
    if (graphql) {
      const selection = `issueOrPullRequest(number: ${number}) { ... on Issue { shown: ${graphql} } ... on PullRequest { shown: ${graphql} } }`;
      expectation.graphql = { selection, picks: ({ issueOrPullRequest }) => issueOrPullRequest.shown, value };
    }
    return [`#${number} ${key}`, expectation];
  }

  #title(number: number, title: string): Shown[number] {
    return this.#of(number, "title", (issue) => issue.title, title, "title");
  }

  #labelled(number: number): Shown[number] {
    const names = [...(this.#labels.get(number) ?? [])].sort();
    const pick = (issue: Body) => issue.labels.map((label: Body) => label.name).sort();
    return this.#of(number, "labels", pick, names);
  }

  #counted(number: number): Shown[number] {
    return this.#of(number, "comments", (issue) => issue.comments, this.#counts.get(number) ?? 0);
  }

  async #createIssue(): Promise<Shown> {
    const title = this.#text();
    const { number } = await this.#send("POST", "/issues", { title });
    this.#issues.push(number);
    const list: Expectation = {
      rest: `/repos/${this.#world.first}/issues?state=all&per_page=100`,
      picks: (found: Body[]) => found.some((one) => one.number === number),
      value: true,
    };
    return [this.#title(number, title), [`#${number} listed`, list]];
  }

  async #createPull(): Promise<Shown> {
    const { simulator, first } = this.#world;
    const [owner = "", name = ""] = first.split("/");
    const repository = simulator.world.repositoryByName(owner, name)?.repository;
    if (!repository) throw new Error("The repository is gone");
    const title = this.#text();
    const head = `topic-${this.#count}`;
    pushBranch(simulator.world, repository.ownerId, repository, head);
    const { number } = await this.#send("POST", "/pulls", { title, head, base: repository.defaultBranch });
    this.#pulls.push(number);
    return [this.#title(number, title)];
  }

  async #retitle(): Promise<Shown> {
    const [number, title] = [this.#either(), this.#text()];
    await this.#send("PATCH", `/issues/${number}`, { title });
    return [this.#title(number, title)];
  }

  async #move(): Promise<Shown> {
    const number = this.#either();
    const state = this.#random.pick(["open", "closed"]);
    await this.#send("PATCH", `/issues/${number}`, { state });
    return [
      this.#of(number, "state", (issue) => issue.state, state),
      this.#of(number, "closed", (issue) => issue.closed_at !== null, state === "closed", "closed"),
      this.#of(number, "closed_by", (issue) => issue.closed_by !== null, state === "closed"),
    ];
  }

  async #comment(): Promise<Shown> {
    const [number, body] = [this.#either(), this.#text()];
    const { id } = await this.#send("POST", `/issues/${number}/comments`, { body });
    this.#comments.set(id, { number, id });
    this.#counts.set(number, (this.#counts.get(number) ?? 0) + 1);
    return [this.#said(id, body), this.#counted(number)];
  }

  #said(id: number, body: string): Shown[number] {
    const rest = `/repos/${this.#world.first}/issues/comments/${id}`;
    return [`comment ${id}`, { rest, picks: (comment) => comment.body, value: body }];
  }

  async #editComment(): Promise<Shown> {
    if (this.#comments.size === 0) return this.#comment();
    const [{ id }, body] = [this.#random.pick([...this.#comments.values()]), this.#text()];
    await this.#send("PATCH", `/issues/comments/${id}`, { body });
    return [this.#said(id, body)];
  }

  async #deleteComment(): Promise<Shown> {
    if (this.#comments.size === 0) return this.#comment();
    const { id, number } = this.#random.pick([...this.#comments.values()]);
    await this.#send("DELETE", `/issues/comments/${id}`);
    this.#comments.delete(id);
    this.#counts.set(number, (this.#counts.get(number) ?? 0) - 1);
    const rest = `/repos/${this.#world.first}/issues/comments/${id}`;
    return [[`comment ${id}`, { rest, picks: () => 404, value: 404, status: 404 }], this.#counted(number)];
  }

  async #addLabel(): Promise<Shown> {
    const [number, name] = [this.#either(), this.#random.pick(["one", "two", "three"])];
    await this.#send("POST", `/issues/${number}/labels`, { labels: [name] });
    this.#labels.set(number, (this.#labels.get(number) ?? new Set()).add(name));
    return [this.#labelled(number)];
  }

  async #takeLabel(): Promise<Shown> {
    const carrying = [...this.#labels].filter(([, names]) => names.size > 0);
    if (carrying.length === 0) return this.#addLabel();
    const [number, names] = this.#random.pick(carrying);
    const name = this.#random.pick([...names]);
    await this.#send("DELETE", `/issues/${number}/labels/${name}`);
    names.delete(name);
    return [this.#labelled(number)];
  }

  async #lock(): Promise<Shown> {
    const number = this.#either();
    await this.#send("PUT", `/issues/${number}/lock`, { lock_reason: "resolved" });
    return [this.#of(number, "locked", (issue) => issue.locked, true, "locked")];
  }

  async #milestoned(): Promise<Shown> {
    const number = this.#either();
    const milestone = this.#random.pick([this.#milestone, null]);
    await this.#send("PATCH", `/issues/${number}`, { milestone });
    return [this.#of(number, "milestone", (issue) => issue.milestone?.number ?? null, milestone)];
  }

  async #assign(): Promise<Shown> {
    const number = this.#either();
    const method = this.#random.pick(["POST", "DELETE"]);
    await this.#send(method, `/issues/${number}/assignees`, { assignees: ["mirror-owner"] });
    const logins = method === "POST" ? ["mirror-owner"] : [];
    return [this.#of(number, "assignees", (issue) => issue.assignees.map(({ login }: Body) => login), logins)];
  }

  async #renameLabel(): Promise<Shown> {
    const name = `name ${++this.#count}`;
    await this.#send("PATCH", `/labels/${encodeURIComponent(this.#label)}`, { new_name: name });
    const rest = (of: string) => `/repos/${this.#world.first}/labels/${encodeURIComponent(of)}`;
    const former = this.#label;
    this.#label = name;
    return [
      [`label ${former}`, { rest: rest(former), picks: () => 404, value: 404, status: 404 }],
      ["the label", { rest: rest(name), picks: (label) => label.name, value: name }],
    ];
  }

  async #renameMilestone(): Promise<Shown> {
    const title = this.#text();
    await this.#send("PATCH", `/milestones/${this.#milestone}`, { title });
    const rest = `/repos/${this.#world.first}/milestones/${this.#milestone}`;
    return [["the milestone", { rest, picks: (milestone) => milestone.title, value: title }]];
  }

  async #editPull(): Promise<Shown> {
    const [number, title] = [this.#random.pick(this.#pulls), this.#text()];
    await this.#send("PATCH", `/pulls/${number}`, { title });
    return [this.#title(number, title)];
  }

  async #review(): Promise<Shown> {
    const [number, body] = [this.#random.pick(this.#pulls), this.#text()];
    const { id } = await this.#send("POST", `/pulls/${number}/reviews`, { event: "COMMENT", body });
    const rest = `/repos/${this.#world.first}/pulls/${number}/reviews?per_page=100`;
    const picks = (reviews: Body[]) => reviews.find((review) => review.id === id)?.body;
    return [[`review ${id}`, { rest, picks, value: body }]];
  }

  async #nodeId(number: number): Promise<string> {
    return (await this.#send("GET", `/issues/${number}`)).node_id;
  }

  async #mutateIssue(): Promise<Shown> {
    const [number, title] = [this.#random.pick(this.#issues), this.#text()];
    await this.#mutate("updateIssue", { id: await this.#nodeId(number), title });
    return [this.#title(number, title)];
  }

  async #mutateComment(): Promise<Shown> {
    const [number, body] = [this.#random.pick(this.#issues), this.#text()];
    await this.#mutate("addComment", { subjectId: await this.#nodeId(number), body });
    this.#counts.set(number, (this.#counts.get(number) ?? 0) + 1);
    return [this.#counted(number)];
  }
}
