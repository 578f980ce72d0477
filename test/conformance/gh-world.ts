import { expect } from "vitest";
import { type ApiWorld, openApiWorld } from "../api/api-world.ts";
import { REACTION_KEYS } from "../support/reactions.ts";
import { type Gh, openGh } from "./gh-runs.ts";

// biome-ignore lint/suspicious/noExplicitAny: what two programs print is compared, not trusted
export type Json = any;

/** A mirror that `gh` is run against, and what its upstream has. */
export class GhWorld implements AsyncDisposable {
  readonly world: ApiWorld;
  readonly gh: Gh;
  readonly repo: string;
  /** Upstream's rows, as REST shows them there. */
  issues: Json[] = [];
  pulls: Json[] = [];
  labels: Json[] = [];
  comments: Json[] = [];
  readonly #resources: AsyncDisposableStack;

  private constructor(world: ApiWorld, gh: Gh, repo: string, resources: AsyncDisposableStack) {
    this.world = world;
    this.gh = gh;
    this.repo = repo;
    this.#resources = resources;
  }

  static async open(): Promise<GhWorld> {
    await using opening = new AsyncDisposableStack();
    const world = opening.use(await openApiWorld({ issues: 150, repositories: 2, upstreamTokens: 40 }));
    Object.assign(world.upstream.quota.limits, { contentPerMinute: Infinity, contentPerHour: Infinity });
    const repo = world.repositories.find((one) => !one.private)?.fullName ?? "";
    const opened = new GhWorld(world, await openGh(world, opening), repo, opening.move());
    await opened.readTruth();
    return opened;
  }

  async all(path: string): Promise<Json[]> {
    const rows: Json[] = [];
    for (let page = 1; ; page += 1) {
      const asked = `${path}${path.includes("?") ? "&" : "?"}per_page=100&page=${page}`;
      const { body, text } = await this.world.getUpstream(asked);
      if (!Array.isArray(body)) throw new Error(`Upstream shows no list at ${path}: ${text}`);
      rows.push(...body);
      if (body.length < 100) return rows;
    }
  }

  async readTruth(): Promise<void> {
    const both = await this.all(`/repos/${this.repo}/issues?state=all`);
    this.issues = both.filter((row) => !row.pull_request);
    this.pulls = await this.all(`/repos/${this.repo}/pulls?state=all`);
    this.labels = await this.all(`/repos/${this.repo}/labels`);
    this.comments = await this.all(`/repos/${this.repo}/issues/comments`);
  }

  /** Answers what a command prints; it must have succeeded. */
  async printed(args: string[], options?: Parameters<Gh>[1]): Promise<string> {
    const { status, out, err } = await this.gh(args, options);
    expect(status, `gh ${args.join(" ")}\n${out}${err}`).toBe(0);
    return out;
  }

  async json(args: string[], options?: Parameters<Gh>[1]): Promise<Json> {
    return JSON.parse(await this.printed(args, options));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }
}

export const lines = (text: string) => text.split("\n").filter((line) => line !== "");
export const numbers = (rows: Json[]): number[] => rows.map((row) => row.number);
export const sorted = (rows: number[]) => [...rows].sort((a, b) => a - b);
export const newestFirst = (rows: Json[]) =>
  numbers(
    [...rows].sort((a, b) =>
      a.created_at === b.created_at ? b.number - a.number : a.created_at < b.created_at ? 1 : -1,
    ),
  );
export const mostCommon = (values: string[]): string => {
  const counts = Map.groupBy(values, (value) => value);
  return [...counts].sort(([, a], [, b]) => b.length - a.length)[0]?.[0] ?? "";
};
/** As GraphQL and so `gh` name the author: nobody where an account is gone. */
export const login = (user: Json) => (!user || user.login === "ghost" ? "" : user.login.replace(/\[bot\]$/, ""));
/** `gh` writes control characters with a caret, and what is no character as the sign for that. */
export const printable = (text: string) =>
  [...text.toWellFormed()]
    .map((sign) => (sign < " " && !"\n\r\t".includes(sign) ? `^${String.fromCharCode(sign.charCodeAt(0) + 64)}` : sign))
    .join("");
/** In its JSON `gh` takes an author who is no user for an app. */
export const jsonLogin = (user: Json) =>
  user?.type === "User" && login(user) !== "" ? login(user) : `app/${login(user)}`;
export const time = (text: string) => `${text.replace("T", " ").replace("Z", "")} +0000 UTC`;
export const labelNames = (row: Json): string[] => row.labels.map((label: Json) => label.name);

/** As `gh` writes the reactions to a resource. */
export const reactions = ({ reactions: counts }: Json) =>
  Object.entries(REACTION_KEYS)
    .filter(([, key]) => counts[key] > 0)
    .map(([content, key]) => ({ content, users: { totalCount: counts[key] } }));
