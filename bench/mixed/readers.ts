import { inspect } from "node:util";
import { Client } from "undici";
import { issueRequest, JSON_TYPE } from "../issue-query.ts";
import type { Problems } from "./problems.ts";

/** A repository that is read; its name follows what upstream calls it. */
export interface ReadRepository {
  id: number;
  fullName: string;
  /** As many issues as it had when the reading began. */
  issues: number;
}

interface Party {
  url: string;
  headers: Record<string, string>;
}

export interface Reading {
  mirror: Party;
  upstream: Party;
  repositories: readonly ReadRepository[];
  connections: number;
  /** Reads that each connection begins in a second, unless the one before is not answered yet. */
  perSecond: number;
  problems: Problems;
  signal: AbortSignal;
}

export interface Reads {
  /** Milliseconds from when each read was due to its last byte, by kind. */
  latencies: Record<Kind, number[]>;
  /** Answers by status. */
  statuses: Record<string, number>;
}

type Kind = "list" | "one" | "graphql" | "again";

interface Read {
  kind: Kind;
  repository: ReadRepository;
  path: string;
  body?: Buffer;
}

const PAGE = 30;
const PAGES = 5;
/** Of one repository: few enough that most were read before, so that an unchanged one is a 304. */
const READ_AGAIN = 20;
const SHARES: readonly [Kind, number][] = [
  ["list", 0.3],
  ["one", 0.3],
  ["graphql", 0.15],
  ["again", 0.25],
];

/**
 * Reads until the signal comes: pages of issues, single issues, `gh`'s issue list by GraphQL, and what was read before
 * by its ETag. An answer that is neither 2xx nor 304 is a problem unless upstream answers alike: things are renamed and
 * deleted there.
 */
export async function readOn(reading: Reading): Promise<Reads> {
  const reads: Reads = { latencies: { list: [], one: [], graphql: [], again: [] }, statuses: {} };
  const tags = new Map<string, string>();
  await Promise.all(
    Array.from({ length: reading.connections }, async () => {
      const client = new Client(reading.mirror.url);
      try {
        await readByOne(client, reading, reads, tags);
      } finally {
        await client.close();
      }
    }),
  );
  return reads;
}

async function readByOne(client: Client, reading: Reading, reads: Reads, tags: Map<string, string>): Promise<void> {
  const { perSecond, signal, problems } = reading;
  const gapMs = 1_000 / perSecond;
  let dueAt = performance.now() + Math.random() * gapMs;
  while (!signal.aborted) {
    const waitMs = dueAt - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    const read = drawRead(reading.repositories);
    try {
      await readOnce(client, reading, read, reads, tags);
    } catch (error) {
      problems.add(`read ${read.kind}: no answer`, `${read.path}: ${inspect(error)}`);
    }
    const now = performance.now();
    reads.latencies[read.kind].push(now - dueAt);
    // A connection that fell behind goes on at this pace from here, and does not make up for it.
    dueAt = Math.max(dueAt + gapMs, now);
  }
}

async function readOnce(
  client: Client,
  reading: Reading,
  { kind, repository, path, body }: Read,
  { statuses }: Reads,
  tags: Map<string, string>,
): Promise<void> {
  const { mirror, upstream, problems } = reading;
  const tag = kind === "again" ? tags.get(path) : undefined;
  const answer = await client.request({
    method: body ? "POST" : "GET",
    path,
    headers: {
      ...mirror.headers,
      ...(body ? JSON_TYPE : {}),
      ...(tag === undefined ? {} : { "if-none-match": tag }),
    },
    ...(body ? { body } : {}),
  });
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  const { statusCode: status, headers } = answer;
  statuses[status] = (statuses[status] ?? 0) + 1;
  const isGood = status === 304 || (status >= 200 && status < 300 && (kind !== "graphql" || !hasErrors(bytes)));
  if (isGood) {
    if (kind === "again" && typeof headers.etag === "string") tags.set(path, headers.etag);
    return;
  }
  const theirs = await fetch(upstream.url + path, {
    method: body ? "POST" : "GET",
    headers: { ...upstream.headers, ...(body ? JSON_TYPE : {}) },
    ...(body ? { body: new Uint8Array(body) } : {}),
    redirect: "manual",
  });
  const text = Buffer.from(await theirs.arrayBuffer());
  const isAlike =
    (theirs.status === status && (kind !== "graphql" || hasErrors(text))) ||
    (await isRenamed(upstream, status, theirs)) ||
    (await isBeyond(reading, path, status, theirs));
  if (!isAlike)
    problems.add(
      `read ${kind}: ${status}${status === 200 ? " with errors" : ""}`,
      `${path}: ${bytes.toString("utf8")}, and upstream ${theirs.status}`,
    );
  else if (status === 301 || kind === "graphql") await findNewName(reading, repository);
}

/** Whether upstream says the same under a name that the repository has had for a moment only. */
async function isRenamed({ headers }: Party, status: number, theirs: Response): Promise<boolean> {
  const location = theirs.headers.get("location");
  if (theirs.status !== 301 || location === null) return false;
  return (await fetch(new URL(location, theirs.url), { headers })).status === status;
}

/**
 * Whether it was transferred out of the mirror: to a repository that is not mirrored, or was not mirrored a moment ago.
 */
async function isBeyond(
  { mirror, upstream }: Reading,
  path: string,
  status: number,
  theirs: Response,
): Promise<boolean> {
  if ((status !== 404 && status !== 410) || theirs.status !== 301) return false;
  // To the end: its own repository may have a new name, too.
  const there = await fetch(upstream.url + path, { headers: upstream.headers });
  const [repository] = /\/repositories\/\d+/.exec(there.url) ?? [];
  const ask = (where: string) => fetch(mirror.url + where, { headers: mirror.headers, redirect: "manual" });
  const isNowhere = there.status === 301 || repository === undefined;
  return isNowhere || !(await ask(repository)).ok || (await ask(path)).status === 301;
}

/** GraphQL writes errors before or after the data; this one asks for no field of that name. */
function hasErrors(body: Buffer): boolean {
  return body.includes('"errors":[');
}

async function findNewName({ mirror, problems }: Reading, repository: ReadRepository): Promise<void> {
  const answer = await fetch(`${mirror.url}/repositories/${repository.id}`, { headers: mirror.headers });
  const body = await answer.text();
  if (answer.ok) repository.fullName = (JSON.parse(body) as { full_name: string }).full_name;
  else problems.add(`read repository: ${answer.status}`, `/repositories/${repository.id}: ${body}`);
}

function drawRead(repositories: readonly ReadRepository[]): Read {
  const repository = repositories[below(repositories.length)] as ReadRepository;
  const repo = `/repos/${repository.fullName}`;
  const kind = drawKind();
  switch (kind) {
    case "list":
      return { kind, repository, path: `${repo}/issues?state=all&per_page=${PAGE}&page=${1 + below(PAGES)}` };
    case "one":
      return { kind, repository, path: `${repo}/issues/${1 + below(repository.issues)}` };
    case "again": {
      const number = 1 + below(Math.min(READ_AGAIN, repository.issues));
      const paths = [`/labels`, `/milestones?state=all`, `/issues/${number}`, `/issues/${number}/comments`];
      return { kind, repository, path: `${repo}${paths[below(paths.length)]}` };
    }
    case "graphql": {
      const [owner = "", name = ""] = repository.fullName.split("/");
      const variables = { limit: PAGE, owner, repo: name, states: ["OPEN"] };
      return { kind, repository, path: "/graphql", body: issueRequest({ before: null, variables }) };
    }
    default:
      return kind satisfies never;
  }
}

function drawKind(): Kind {
  let roll = Math.random();
  for (const [kind, share] of SHARES) {
    if (roll < share) return kind;
    roll -= share;
  }
  return "list";
}

function below(count: number): number {
  return Math.floor(Math.random() * count);
}
