import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTarget } from "../../src/events/target.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openTargetServer, type TargetServer } from "../events/target-server.ts";
import { type ToldRepository, tell } from "../events/tell.ts";
import { type Collector, openCollector, type ToldSpan } from "../support/collector.ts";
import { NOWHERE, UPSTREAM_TOKEN } from "../support/config.ts";
import { until } from "../support/patience.ts";
import { startProgram } from "../support/program.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

// What Tain's processes tell an OpenTelemetry collector.

/** `00-<trace>-<span>-01`: the caller has begun this trace, and wants it told. */
const traceparent = (of: string) => {
  const hex = createHash("sha256").update(of).digest("hex");
  return { trace: hex.slice(0, 32), header: `00-${hex.slice(0, 32)}-${hex.slice(32, 48)}-01` };
};
const HEADER_SECRET = "the-collectors-own-key";
/** Spans are told soon, so that a test need not wait for the batch of five seconds. */
const OTEL = { OTEL_BSP_SCHEDULE_DELAY: "50", OTEL_EXPORTER_OTLP_HEADERS: `api-key=${HEADER_SECRET}` };

const LOADED = "OpenTelemetry's SDK is loaded";
/** Logs a line when the program loads the SDK. */
const WATCH_MODULES = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module";
  registerHooks({
    load(url, context, next) {
      if (url.includes("@opentelemetry/sdk-")) console.log(JSON.stringify({ level: 30, msg: "${LOADED}" }));
      return next(url, context);
    },
  });`)}`;

let world: TestWorld;
let collector: Collector;
let target: TargetServer;
beforeAll(async () => {
  world = await openWorld({
    env: { TARGETS_ALLOWED: "127.0.0.1" },
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 4, repositories: 1, issues: 6, pulls: 0 }),
  });
  await world.mirror(world.first);
  // From here on programs of their own do the work.
  world.stop();
  collector = await openCollector();
  target = await openTargetServer();
});
afterAll(async () => {
  await target?.[Symbol.asyncDispose]();
  await collector?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

/** A web process, and its address. */
async function startWeb(env: NodeJS.ProcessEnv) {
  const web = startProgram("src/web.ts", { ...world.env, LOG_LEVEL: "info", ...env }, [], {
    nodeFlags: ["--import", WATCH_MODULES],
  });
  const { address } = await web.said("Listening");
  return { web, url: String(address) };
}

const traced = () => ({ ...OTEL, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
const inTrace = (trace: string) => collector.spans.filter(({ traceId }) => traceId === trace);
const named = (trace: string, name: string) => inTrace(trace).find((span) => span.name === name);

/** Whether the span is below the other one in their trace. */
function isBelow(span: ToldSpan | undefined, above: ToldSpan | undefined): boolean {
  for (let one = span; one; one = collector.spans.find(({ spanId }) => spanId === one?.parentId))
    if (one.parentId === above?.spanId) return true;
  return false;
}

async function editedIssue(title: string) {
  const { body: repository } = await world.get(`/repos/${world.first}`);
  const { body: issues } = await world.get(`/repos/${world.first}/issues?state=all&per_page=1`);
  const [issue] = issues as Record<string, unknown>[];
  const updated_at = new Date(Date.parse(String(issue?.updated_at)) + 60_000).toISOString().replace(".000Z", "Z");
  return {
    repository: repository as ToldRepository,
    payload: { action: "edited", issue: { ...issue, title, updated_at }, repository, sender: issue?.user },
  };
}

test("a trace leads from a delivery to its job, its rows and a target; and from a caller to their statements and to upstream", async () => {
  const path = "/a-secret-path-of-the-targets";
  const { repository, payload } = await editedIssue("A title that must not be told");
  await createTarget(world.ctx, {
    scope: { kind: "repository", id: repository.id },
    madeBy: "operator",
    url: target.url.replace("/hook", path),
    contentType: "json",
    insecureSsl: false,
    secret: "a secret of the target's",
    events: ["*"],
    active: true,
    rewriteTo: null,
  });
  // Only traces that callers want told are told. An SDK that did not know of the sampler would tell all.
  const env = { ...traced(), OTEL_SERVICE_NAME: "mirror-of-ours", OTEL_TRACES_SAMPLER: "parentbased_always_off" };
  const { url, web } = await startWeb(env);
  const worker = startProgram("workers/main.ts", { ...world.env, ...traced(), LOG_LEVEL: "info" });
  const { trace, header } = traceparent("a delivery");
  const guid = await tell({ ctx: world.ctx, url }, { event: "issues", payload, headers: { traceparent: header } });
  await target.hears(1);
  const sent = () =>
    collector.spans.find(({ name, attributes }) => name === "send event" && attributes["tain.delivery"] === guid);
  await until("the sending is told", async () => sent() !== undefined);
  expect(sent()?.traceId).toBe(trace);
  await until("the whole is told", async () =>
    ["POST /webhooks", "deliveries apply", "apply delivery"].every((name) => named(trace, name)),
  );

  const received = named(trace, "POST /webhooks");
  expect(received).toMatchObject({
    kind: 2,
    parentId: header.split("-")[2],
    attributes: {
      "http.route": "/webhooks",
      "http.response.status_code": 202,
      "tain.event": "issues",
      "tain.delivery": guid,
    },
    resource: { "service.name": "mirror-of-ours", "tain.process": "web" },
  });
  const job = named(trace, "deliveries apply");
  expect(job).toMatchObject({ kind: 5, parentId: received?.spanId, resource: { "service.name": "tain" } });
  expect(job?.resource["tain.process"]).toBe("worker");
  expect(named(trace, "apply delivery")).toMatchObject({
    parentId: received?.spanId,
    attributes: { "tain.outcome": "applied" },
  });
  // The receiver stores the delivery, and the job writes its rows.
  const statements = inTrace(trace).filter(({ attributes }) => attributes["db.system.name"] === "postgresql");
  expect(statements.find(({ name }) => name === "insert deliveries")).toMatchObject({
    parentId: received?.spanId,
    hasFailed: false,
  });
  expect(statements.filter((one) => isBelow(one, job)).map(({ name }) => name)).toEqual(
    expect.arrayContaining(["transaction", "update deliveries", "insert events"]),
  );
  expect(sent()).toMatchObject({
    kind: 3,
    parentId: received?.spanId,
    attributes: { "http.response.status_code": 200 },
  });
  // A target that traces goes on with this trace.
  expect(target.heard[0]?.headers.traceparent).toBe(`00-${trace}-${sent()?.spanId}-01`);
  const ask = async (path: string, token: string, header: string) =>
    await fetch(`${url}${path}`, {
      headers: { authorization: `token ${token}`, "user-agent": "test", traceparent: header },
    });

  const read = traceparent("a read of rows");
  expect(
    (await ask(`/repos/${world.first}/issues?state=all&since=2001-02-03T04:05:06Z`, world.token, read.header)).status,
  ).toBe(200);
  await until("the read is told", async () => named(read.trace, "GET /repos/*/*/issues") !== undefined);
  const request = named(read.trace, "GET /repos/*/*/issues");
  expect(request).toMatchObject({
    kind: 2,
    parentId: read.header.split("-")[2],
    attributes: { "http.route": "/repos/*/*/issues", "tain.caller": "own", "tain.source": "mirror" },
  });
  const asked = inTrace(read.trace).filter(({ attributes }) => attributes["db.query.text"] !== undefined);
  expect(asked.map(({ name }) => name)).toContain("select issues");
  expect(asked.every((one) => isBelow(one, request))).toBe(true);
  expect(asked.map(({ attributes }) => attributes["db.query.text"]).join(" ")).toMatch(/\$1/);

  const passed = traceparent("a read that is forwarded");
  const { body: shown } = await world.get(`/repos/${world.first}`);
  const head = `/repos/${world.first}/commits/${(shown as { default_branch: string }).default_branch}`;
  expect((await ask(head, UPSTREAM_TOKEN, passed.header)).status).toBe(200);
  await until("it is told", async () => inTrace(passed.trace).some(({ kind }) => kind === 2));
  const forwarded = inTrace(passed.trace).find(({ kind }) => kind === 2);
  expect(forwarded?.attributes).toMatchObject({ "tain.caller": "upstream", "tain.source": "forwarded" });
  const upstream = inTrace(passed.trace).filter((one) => one.attributes["server.address"] === "127.0.0.1");
  expect(upstream.map(({ attributes }) => attributes["url.template"])).toContain("/repos/*/*/commits/*");
  expect(upstream.every((one) => one.kind === 3 && isBelow(one, forwarded))).toBe(true);

  // A caller may ask that its trace is not told. Requests to the process itself are never told.
  const untold = traceparent("a read that is not told");
  const soon = traceparent("a read after it");
  await ask(`/repos/${world.first}/labels`, world.token, untold.header.replace(/01$/, "00"));
  await fetch(`${url}/-/live`, { headers: { traceparent: traceparent("a probe").header } });
  await ask(`/repos/${world.first}`, world.token, soon.header);
  await until("the last is told", async () => inTrace(soon.trace).some(({ kind }) => kind === 2));
  expect([...inTrace(untold.trace), ...inTrace(traceparent("a probe").trace)]).toEqual([]);

  for (const one of [web, worker]) expect(await one.stop()).toBe(0);
  expect(collector.requests.every(({ headers }) => headers["api-key"] === HEADER_SECRET)).toBe(true);
  expect(new Set(collector.requests.map(({ path: at }) => at))).toEqual(new Set(["/v1/traces"]));
  expect(collector.bytes()).not.toContain(world.first);
  expect(web.lines.some(({ msg }) => msg === LOADED)).toBe(true);
  const told = collector.bytes() + JSON.stringify([...web.lines, ...worker.lines]);
  for (const secret of [
    path,
    "must not be told",
    "2001-02",
    world.token,
    UPSTREAM_TOKEN,
    "test-webhook-secret",
    HEADER_SECRET,
  ])
    expect(told).not.toContain(secret);
});

test("a collector that is away changes no answer, holds up no end, and is logged once", async () => {
  const { url, web } = await startWeb({
    ...OTEL,
    OTEL_EXPORTER_OTLP_ENDPOINT: NOWHERE.upstream,
    // The exporter tries again until this time is over.
    OTEL_EXPORTER_OTLP_TIMEOUT: "300",
  });
  const ask = async () => {
    const { status } = await fetch(`${url}/repos/${world.first}`, {
      headers: { authorization: `token ${world.token}`, "user-agent": "test" },
    });
    expect(status).toBe(200);
  };
  await ask();
  const away = "Traces cannot be sent";
  await web.said(away);
  for (let time = 0; time < 3; time++) await ask();
  expect(await web.stop()).toBe(0);
  expect(web.lines.filter(({ msg }) => msg.startsWith(away))).toHaveLength(1);
});

test("nothing of it is loaded where it is off", async () => {
  const { web } = await startWeb({});
  expect(await web.stop()).toBe(0);
  expect(web.lines.some(({ msg }) => msg === LOADED)).toBe(false);
});
