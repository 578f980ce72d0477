import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A check run, a suite or a status, as upstream shows it. Its addresses begin with the relay's. */
type Shown = Record<string, unknown> & { id: number };

/** The checks and statuses that upstream has of one commit. */
interface Checks {
  runs: Shown[];
  suites: Shown[];
  statuses: Shown[];
}

/**
 * Stands between the mirror and a simulated upstream. Questions about commits it answers itself, with what a test puts
 * there and in the service's own shapes. All other requests go on to upstream.
 */
export interface CheckedUpstream extends AsyncDisposable {
  url: string;
  /** The address to which all other requests go. */
  target: string;
  of(sha: string): Checks;
  /** The head of the default branch. */
  defaultHead: string;
  /** The heads of the open pull requests, from which GraphQL's sums are made. */
  heads: () => string[];
  /**
   * The questions about commits, as `200 /commits/…`. Sums of all heads are noted as `sums`, those of single heads as
   * `sums of …`.
   */
  asked: string[];
  /** True: answers as to a token without the permission for checks, so no check of any commit. */
  isHidden: boolean;
  /** The repository that is shown of single heads. Undefined: the real one. */
  owner: unknown;
  /** Runs once, before the next question about a commit is answered. */
  meanwhile: (() => Promise<void>) | null;
}

const LIST =
  /^\/(?:repos\/[^/]+\/[^/]+|repositories\/\d+)\/(?:commits\/([^/]+)\/(check-runs|check-suites|statuses|status)|check-runs\/(\d+)|git\/ref\/heads\/(.+))$/;

export async function openCheckedUpstream(): Promise<CheckedUpstream> {
  const commits = new Map<string, Checks>();
  const upstream = {
    url: "",
    target: "",
    asked: [],
    defaultHead: "d".repeat(40),
    heads: () => [],
    isHidden: false,
    owner: undefined,
    meanwhile: null,
  } as {
    -readonly [K in
      | "url"
      | "target"
      | "asked"
      | "defaultHead"
      | "heads"
      | "isHidden"
      | "owner"
      | "meanwhile"]: CheckedUpstream[K];
  };
  const of = (sha: string) => commits.getOrInsertComputed(sha, () => ({ runs: [], suites: [], statuses: [] }));

  const send = (request: IncomingMessage, response: ServerResponse, status: number, body: unknown) => {
    const text = JSON.stringify(body);
    const etag = `"${createHash("sha256").update(text).digest("hex")}"`;
    const isKnown = request.headers["if-none-match"] === etag;
    const headers = { "content-type": "application/json; charset=utf-8", etag, "x-oauth-scopes": "repo" };
    response.writeHead(isKnown ? 304 : status, headers).end(isKnown ? undefined : text);
    return isKnown ? 304 : status;
  };
  const answerOf = (path: string): [number, unknown] | null => {
    const [, sha = "", list, runId, branch] = LIST.exec(path) ?? [];
    if (upstream.isHidden && (list || runId)) return [404, { message: "Not Found" }];
    if (branch) return [200, { ref: `refs/heads/${branch}`, object: { type: "commit", sha: upstream.defaultHead } }];
    const all = [...commits.values()];
    const run = runId && all.flatMap(({ runs }) => runs).find(({ id }) => id === Number(runId));
    if (runId) return run ? [200, run] : [404, { message: "Not Found" }];
    const { runs, suites, statuses } = of(sha);
    switch (list) {
      case "check-runs":
        return [200, { total_count: runs.length, check_runs: runs.toSorted((a, b) => b.id - a.id) }];
      case "check-suites":
        return [200, { total_count: suites.length, check_suites: suites }];
      case "statuses":
        return [200, statuses.toSorted((a, b) => b.id - a.id)];
      case "status":
        return [200, { state: "of upstream", statuses: [], sha }];
      default:
        return null;
    }
  };
  const sums = (sha: string) => {
    const { runs, statuses } = of(sha);
    if (runs.length + statuses.length === 0) return null;
    const count = (states: unknown[]) =>
      [...Map.groupBy(states, String)].map(([state, { length }]) => ({ state: state.toUpperCase(), count: length }));
    const last = <One>(rows: One[], key: (row: One) => string) => [
      ...new Map(rows.map((row) => [key(row), row])).values(),
    ];
    const lastRuns = last(runs, (run) => JSON.stringify([run.name, run.check_suite]));
    const lastStatuses = last(statuses, ({ context }) => String(context).toLowerCase());
    const shown = lastStatuses.map(({ node_id: id, context, state, created_at: createdAt }) => ({
      ...{ __typename: "StatusContext", id, context, state: String(state).toUpperCase(), createdAt },
    }));
    const nodes = lastRuns.map(({ node_id: id, status, started_at: startedAt }) => ({
      ...{ __typename: "CheckRun", id, status: String(status).toUpperCase(), startedAt },
      checkSuite: { id: "CS_70", status: "COMPLETED", updatedAt: "2026-01-01T00:05:00Z" },
    }));
    return {
      contexts: {
        nodes: [...nodes, ...shown],
        totalCount: lastRuns.length + lastStatuses.length,
        checkRunCount: lastRuns.length,
        statusContextCount: lastStatuses.length,
        checkRunCountsByState: count(lastRuns.map(({ status, conclusion }) => conclusion ?? status)),
        statusContextCountsByState: count(lastStatuses.map(({ state }) => state)),
      },
    };
  };

  /** Adds what the test has put there about the heads to upstream's answer about single pull requests. */
  const withSums = (text: string): string => {
    const answer = JSON.parse(text);
    for (const [alias, list] of Object.entries<
      { headRefOid?: string; repository?: unknown; statusCheckRollup?: unknown }[]
    >(answer.data))
      for (const [at, node] of Array.isArray(list) ? list.entries() : []) {
        if (node?.headRefOid === undefined) continue;
        upstream.asked.push(`sums of ${node.headRefOid}`);
        if (upstream.owner !== undefined) node.repository = upstream.owner;
        node.statusCheckRollup = upstream.isHidden ? null : sums(node.headRefOid);
        const fault = { type: "FORBIDDEN", path: [alias, at, "statusCheckRollup"], message: "Not accessible" };
        if (upstream.isHidden) answer.errors = [...(answer.errors ?? []), fault];
      }
    return JSON.stringify(answer);
  };

  async function relay(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const path = request.url ?? "/";
    const { meanwhile } = upstream;
    const isOfHeads = body.includes("checkRunCountsByState") && !body.includes("states: OPEN");
    if (meanwhile && (isOfHeads || LIST.test(new URL(path, "http://upstream").pathname))) {
      upstream.meanwhile = null;
      await meanwhile();
    }
    const held = request.method === "GET" ? answerOf(new URL(path, "http://upstream").pathname) : null;
    if (held) {
      const status = send(request, response, held[0], held[1]);
      upstream.asked.push(
        `${status} ${path.replace(/^\/(repos\/[^/]+\/[^/]+|repositories\/\d+)/, "").replace(/\?.*/, "")}`,
      );
      return;
    }
    if (body.includes("checkRunCountsByState") && body.includes("states: OPEN")) {
      upstream.asked.push("sums");
      const node = {
        pullRequests: {
          pageInfo: { hasNextPage: false, endCursor: null },
          nodes: upstream.heads().map((sha) => ({ headRefOid: sha, statusCheckRollup: sums(sha) })),
        },
      };
      send(request, response, 200, { data: { node } });
      return;
    }
    const { host: _, connection: __, "content-length": ___, "transfer-encoding": ____, ...headers } = request.headers;
    const answer = await fetch(`${upstream.target}${path}`, {
      method: request.method ?? "GET",
      headers: { ...(headers as Record<string, string>), "accept-encoding": "identity" },
      body: body === "" ? null : body,
      redirect: "manual",
    });
    const own = (await answer.text()).replaceAll(upstream.target, upstream.url);
    const text = isOfHeads ? withSums(own) : own;
    const bare = [...answer.headers].filter(
      ([name]) => !["connection", "keep-alive", "content-length", "transfer-encoding"].includes(name),
    );
    response
      .writeHead(
        answer.status,
        Object.fromEntries(bare.map(([name, value]) => [name, value.replaceAll(upstream.target, upstream.url)])),
      )
      .end(text);
  }

  const server = createServer((request, response) => {
    relay(request, response).catch((error: Error) => response.destroy(error));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  upstream.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(upstream, {
    of,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  });
}
