import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual, promisify } from "node:util";
import { brotliDecompress, gunzip } from "node:zlib";
import { ASKED_AFTER_MS, openCheckoutWorld } from "./checkout-world.ts";
import { type Asked, exchangeRequests, HOST } from "./exchange-requests.ts";

/** A reply, without what differs each time. */
interface Answered {
  status: number;
  /** By their names in lower case. */
  headers: Record<string, string>;
  body: string;
}

/** A server that says nothing for so long has no more to say. */
const QUIET_MS = 1_500;

/**
 * Asks the web processes of two checkouts the same, each over its own copy of one world, and prints each difference
 * between their replies. Header names are compared in lower case, and without their order.
 */
export async function compareExchanges(before: string, after: string): Promise<void> {
  // An hour ago, so that what is written meanwhile can be told from what was there.
  const startsAt = Math.floor(Date.now() / 1_000) * 1_000 - 3_600_000;
  const was = await record(before, { startsAt, upstreamPort: 0 });
  const is = await record(after, { startsAt, upstreamPort: was.upstreamPort });
  let differences = 0;
  for (const [at, { asked, answered }] of is.recorded.entries()) {
    const other = was.recorded[at]?.answered;
    if (isDeepStrictEqual(answered, other)) continue;
    differences += 1;
    console.log(JSON.stringify({ at, asked: brief(asked), before: other, after: answered }, shortened));
  }
  console.log(JSON.stringify({ requests: is.recorded.length, differences }));
}

interface Recording {
  recorded: { asked: Asked; answered: Answered }[];
  /** Where upstream listened, which bodies and their tags tell. */
  upstreamPort: number;
}

/** @param at.upstreamPort 0: any */
async function record(
  checkout: string,
  { startsAt, upstreamPort }: { startsAt: number; upstreamPort: number },
): Promise<Recording> {
  await using resources = new AsyncDisposableStack();
  const { url, upstream, place } = await openCheckoutWorld(checkout, resources, { startsAt, upstreamPort });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  resources.defer(() => agent.destroy());
  const recorded: Recording["recorded"] = [];
  for (const asked of exchangeRequests(place)) {
    const answered = asked.raw === undefined ? await ask(url, asked, agent) : await say(url, asked.raw);
    recorded.push({ asked, answered: await steady(answered, startsAt + ASKED_AFTER_MS) });
  }
  return { recorded, upstreamPort: Number(new URL(upstream.url).port) };
}

interface Raw {
  status: number;
  rawHeaders: string[];
  body: Buffer;
}

async function ask(url: string, { method, path, headers = {}, body }: Asked, agent: Agent): Promise<Raw> {
  const sent = { Host: HOST, ...headers, ...(body !== undefined && { "Content-Length": Buffer.byteLength(body) }) };
  const { hostname, port } = new URL(url);
  return await new Promise((answered) => {
    const asking = request({ hostname, port, method, path, headers: sent, agent, setHost: false });
    asking.on("response", async (answer) => {
      const parts: Buffer[] = await answer.toArray();
      answered({ status: answer.statusCode ?? 0, rawHeaders: answer.rawHeaders, body: Buffer.concat(parts) });
    });
    // A server that refuses a long body may close the connection before the caller could read that.
    asking.on("error", (error) => answered({ status: 0, rawHeaders: [], body: Buffer.from(error.message) }));
    asking.end(body);
  });
}

/** What a server answers to something that need not be HTTP, until it closes the connection or says no more. */
async function say(url: string, raw: string): Promise<Raw> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.write(raw);
  let text = "";
  socket.setEncoding("latin1").on("data", (part) => {
    text += part;
  });
  await Promise.race([once(socket, "close"), delay(QUIET_MS)]);
  socket.destroy();
  const [head = "", ...rest] = text.split("\r\n\r\n");
  const [status = "", ...lines] = head.split("\r\n");
  return {
    status: Number(status.split(" ")[1]),
    rawHeaders: lines.flatMap((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
    body: Buffer.from(rest.join("\r\n\r\n"), "latin1"),
  };
}

/** Headers that no two servers write alike. */
const VOLATILE = ["date", "x-github-request-id", "x-ratelimit-reset", "age", "x-tain-confirmed-at"];

/** A reply without times, ids and addresses of this very run. */
async function steady({ status, rawHeaders, body }: Raw, nowAt: number): Promise<Answered> {
  const headers: Record<string, string> = {};
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase();
    headers[name] = VOLATILE.includes(name) ? "*" : (rawHeaders[at + 1] as string);
  }
  const text = await unpacked(body, headers["content-encoding"]);
  const shown = text
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)/g, (time) =>
      Date.parse(time) >= nowAt ? "<now>" : time,
    )
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/g, "<now>")
    .replace(/[0-9A-F]{4}:[0-9A-F]{6}:[0-9A-F]{6}:[0-9A-F]{8}:[0-9A-F]{8}/g, "<id>")
    .replace(/"(reset|lagSeconds)":\d+/g, '"$1":0')
    .replace(/"version":"[\d.]+"/g, '"version":"*"');
  if (/<now>|"version":"\*"/.test(shown) && headers.etag) headers.etag = headers.etag.replace(/"[0-9a-f]{64}"/, "*");
  if (shown !== text) delete headers["content-length"];
  return { status, headers, body: shown };
}

async function unpacked(body: Buffer, encoding: string | undefined): Promise<string> {
  if (body.length === 0) return "";
  if (encoding === "gzip") return (await promisify(gunzip)(body)).toString();
  return (encoding === "br" ? await promisify(brotliDecompress)(body) : body).toString();
}

function brief({ method, path, headers, body }: Asked): Asked {
  return { method, path, ...(headers && { headers }), ...(body !== undefined && { body: body.slice(0, 100) }) };
}

/** Long bodies are told by their beginning. */
function shortened(_key: string, value: unknown): unknown {
  return typeof value === "string" && value.length > 400 ? `${value.slice(0, 400)}… (${value.length})` : value;
}
