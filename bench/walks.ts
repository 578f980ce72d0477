import { createHmac, randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ASKED_AFTER_MS, type CheckoutWorld, openCheckoutWorld } from "./checkout-world.ts";
import { type Coverage, openCoverage } from "./coverage.ts";
import { HOST } from "./exchange-requests.ts";
import { freePort } from "./free-port.ts";
import { startProgram } from "./processes.ts";

/** The files that each walk enters, by name: at least one function of each runs. */
type Walks = Record<string, string[]>;

/** A worker first runs alone for this long. What it does by itself then is no part of the walk. */
const IDLE_MS = 5_000;
const PATIENCE_MS = 60_000;

/**
 * Prints which files of each checkout are entered by a delivery of an issue, two reads of a list and a query. At least
 * one function of each ran.
 */
export async function compareWalks(before: string, after: string): Promise<void> {
  const [was, is] = [await walksOf(before), await walksOf(after)];
  for (const [walk, files] of Object.entries(is))
    console.log(JSON.stringify({ walk, before: was[walk]?.length, after: files.length, files, was: was[walk] }));
}

async function walksOf(checkout: string): Promise<Walks> {
  await using resources = new AsyncDisposableStack();
  const [webPort, workerPort] = [await freePort(), await freePort()];
  const startsAt = Math.floor(Date.now() / 1_000) * 1_000 - ASKED_AFTER_MS;
  const world = await openCheckoutWorld(checkout, resources, {
    startsAt,
    upstreamPort: 0,
    webFlags: `--inspect=127.0.0.1:${webPort}`,
  });
  const web = resources.use(await openCoverage(webPort));
  const ours = (scripts: Iterable<string>) =>
    [...scripts]
      .filter((one) => one.startsWith("file:") && !one.includes("/node_modules/"))
      .map((one) => fileURLToPath(one).slice(resolve(checkout).length + 1));
  const entered = async (walk: () => Promise<void>, worker?: Coverage) => {
    await worker?.take();
    await delay(worker ? IDLE_MS : 0);
    const idle = new Set(await worker?.take());
    await web.take();
    await walk();
    const taken = new Set(await worker?.take()).difference(idle);
    return [...new Set([...ours(await web.take()), ...ours(taken)])].toSorted();
  };

  const { place } = world;
  const list = `/repos/${place.repository.fullName}/issues?state=all&per_page=30`;
  // This request opens the connection and plans the statements, so that the walk has neither.
  await ask(world, `${list}&page=2`, place.tokens.own);
  const first = await entered(() => ask(world, list, place.tokens.reading));
  await ask(world, list, place.tokens.reading);
  const again = await entered(() => ask(world, list, place.tokens.reading));
  await query(world, "{ rateLimit { remaining } }");
  const graphql = await entered(() => query(world, issuesOf(place.repository.fullName)));

  resources.use(
    startProgram(resolve(checkout, "workers", "main.ts"), {
      ...world.env,
      LOG_LEVEL: "error",
      NODE_OPTIONS: `--inspect=127.0.0.1:${workerPort}`,
    }),
  );
  const worker = resources.use(await openCoverage(workerPort));
  await deliver(world);
  const delivery = await entered(() => deliver(world), worker);
  return { delivery, again, first, graphql };
}

async function ask({ url }: CheckoutWorld, path: string, token: string): Promise<void> {
  const answer = await fetch(url + path, { headers: { Authorization: `Bearer ${token}` } });
  if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
  await answer.arrayBuffer();
}

function issuesOf(fullName: string): string {
  const [owner, name] = fullName.split("/");
  return `{ repository(owner: "${owner}", name: "${name}") {
    issues(first: 10, orderBy: {field: UPDATED_AT, direction: DESC}) { nodes {
      number title body author { login } labels(first: 5) { nodes { name color } } comments { totalCount }
    } } } }`;
}

async function query({ url, place }: CheckoutWorld, text: string): Promise<void> {
  const answer = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { Authorization: `Bearer ${place.tokens.own}`, "Content-Type": "application/json" },
    body: JSON.stringify({ query: text }),
  });
  const { errors } = (await answer.json()) as { errors?: unknown };
  if (errors !== undefined) throw new Error(`${text}: ${JSON.stringify(errors)}`);
}

/** Tells of an edited issue. @throws Error when the mirror does not show it in time */
async function deliver({ url, upstream, database, place }: CheckoutWorld): Promise<void> {
  const headers = { Authorization: "Bearer upstreams-token", "User-Agent": HOST };
  const read = async (path: string) =>
    (await (await fetch(upstream.url + path, { headers })).json()) as Record<string, unknown>;
  const repository = await read(`/repos/${place.repository.fullName}`);
  const issue = await read(`/repos/${place.repository.fullName}/issues/${place.issue}`);
  const title = `Edited ${randomUUID()}`;
  const body = JSON.stringify({
    action: "edited",
    issue: { ...issue, title, updated_at: `${new Date().toISOString().slice(0, 19)}Z` },
    changes: { title: { from: issue.title } },
    repository,
    sender: issue.user,
  });
  const answer = await fetch(`${url}/webhooks`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "X-GitHub-Event": "issues",
      "X-GitHub-Delivery": randomUUID(),
      "X-GitHub-Hook-ID": "1",
      "X-Hub-Signature-256": `sha256=${createHmac("sha256", place.webhookSecret).update(body).digest("hex")}`,
    },
    body,
  });
  if (!answer.ok) throw new Error(`POST /webhooks: ${answer.status} ${await answer.text()}`);
  const stored = "select from issues where repository_id = $1 and document->>'title' = $2";
  const asked = Date.now();
  while ((await database.query(stored, [place.repository.id, title])).rowCount === 0) {
    if (Date.now() - asked > PATIENCE_MS) throw new Error(`The mirror did not show an edited issue: ${title}`);
    await delay(20);
  }
}
