import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createIssue } from "../../src/simulator/changes/issues.ts";
import { createPull, pushBranch } from "../../src/simulator/changes/pulls.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import { openSimulator, type SimulatorOptions } from "../../src/simulator/simulator.ts";
import { SettableClock } from "../../src/simulator/world/clock.ts";
import type { Issue, PullIssue, Repository, User } from "../../src/simulator/world/records.ts";

// biome-ignore lint/suspicious/noExplicitAny: answers are foreign JSON, and tests look into them as clients do.
type Body = any;

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
  readonly text: string;
}

interface Ask {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the owner's token. Null: no token. */
  readonly token?: string | null;
}

/** A simulator on a clock that stands still, with a repository `octo/demo` that belongs to the token's owner. */
export interface Simulated extends AsyncDisposable {
  readonly simulator: Simulator;
  readonly clock: SettableClock;
  readonly owner: User;
  readonly repository: Repository;
  ask(method: string, path: string, ask?: Ask): Promise<Reply>;
  get(path: string, ask?: Ask): Promise<Reply>;
  control(method: string, path: string, body?: unknown): Promise<Reply>;
  issue(title?: string): Issue;
  /** Opens a pull request from a branch of the repository itself, which is made for it. */
  openPull(head?: string): PullIssue;
}

export const TOKEN = "ghp_ownersOwnTokenForTests";
export const START = Date.UTC(2026, 9, 1, 12);

/** The ids in a list of deliveries, as upstream wrote them. They are too large for exact numbers. */
export function deliveryIds({ text }: { text: string }): bigint[] {
  return [...text.matchAll(/\{"id":(\d+),"guid"/g)].map(([, digits]) => BigInt(digits ?? ""));
}

export async function openSimulated(options: SimulatorOptions = {}): Promise<Simulated> {
  const clock = new SettableClock(START);
  const simulator = await openSimulator({ clock, tokens: [{ token: TOKEN, login: "octo" }], ...options });
  const { world } = simulator;
  const owner = world.userByLogin("octo") ?? world.addUser({ login: "octo" });
  const repository = world.addRepository({ ownerId: owner.id, name: "demo" });

  const ask = async (method: string, path: string, { body, headers, token = TOKEN }: Ask = {}): Promise<Reply> => {
    const response = await fetch(path.startsWith("http") ? path : simulator.url + path, {
      method,
      redirect: "manual",
      headers: {
        "user-agent": "tests",
        ...(token === null ? {} : { authorization: `token ${token}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json") && text !== "";
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : null };
  };
  return {
    simulator,
    clock,
    owner,
    repository,
    ask,
    get: (path, with_) => ask("GET", path, with_),
    control: (method, path, body) => ask(method, path, { body, token: null }),
    issue: (title = "An issue") => createIssue(world, owner.id, { repository, title }),
    openPull: (head = "topic") => {
      pushBranch(world, owner.id, repository, head);
      const branches = { headRepository: repository, headRef: head, baseRef: "main" };
      return createPull(world, owner.id, { repository, ...branches, title: "A change" });
    },
    [Symbol.asyncDispose]: () => simulator.close(),
  };
}

/** The address behind a rel of a `Link` header. */
export function rel(reply: Reply, name: string): string | undefined {
  const link = reply.headers.get("link") ?? "";
  return new RegExp(`<([^>]+)>; rel="${name}"`).exec(link)?.[1];
}

export function rels(reply: Reply): string[] {
  return [...(reply.headers.get("link") ?? "").matchAll(/rel="(\w+)"/g)].map((match) => match[1] ?? "");
}

export interface Heard {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The bytes that were signed. */
  readonly raw: string;
  readonly event: string;
  readonly guid: string;
  readonly payload: Body;
}

/** A receiver of webhooks that remembers what it received. */
export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly heard: Heard[];
  /** `event` or `event.action` of each webhook, in the order received. */
  names(): string[];
  /** The status with which the next requests are answered. `null`: they get no answer. */
  answer: { status: number | null };
}

export async function openReceiver(): Promise<Receiver> {
  const heard: Heard[] = [];
  const answer: { status: number | null } = { status: 200 };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const raw = Buffer.concat(chunks).toString("utf8");
    const form = request.headers["content-type"] === "application/x-www-form-urlencoded";
    heard.push({
      headers: request.headers,
      raw,
      event: String(request.headers["x-github-event"]),
      guid: String(request.headers["x-github-delivery"]),
      payload: JSON.parse(form ? (new URLSearchParams(raw).get("payload") ?? "") : raw),
    });
    if (answer.status !== null) response.writeHead(answer.status, { "x-seen": "yes" }).end("heard");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`,
    heard,
    answer,
    names: () => heard.map(({ event, payload }) => (payload.action ? `${event}.${payload.action}` : event)),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
