/**
 * Every way that is known to us by which a target's address may lead inward. Each is really asked for; none may arrive.
 */
import type { LookupAddress } from "node:dns";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isAccepted, TargetClient } from "../../src/events/post.ts";
import { NOWHERE, testConfig } from "../support/config.ts";
import { printFigures } from "../support/figures.ts";

/** What nobody beyond this machine or its network may be made to reach (IANA's special-purpose registries). */
const INWARD_V4 = [
  ...["127.0.0.1", "127.0.0.53", "127.255.255.254", "0.0.0.0", "0.0.0.1", "10.0.0.1", "10.255.255.255", "172.16.0.1"],
  ...[
    "172.31.255.254",
    "192.168.0.1",
    "192.168.255.254",
    "169.254.169.254",
    "169.254.170.2",
    "100.64.0.1",
    "100.100.100.200",
  ],
  ...[
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
  ],
  ...["224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"],
];
const INWARD_V6 = [
  ...["::", "::1", "fe80::1", "febf::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "100::1", "2001:db8::1"],
  ...["2001:10::1", "2001:20::1", "3fff::1", "5f00::1", "4000::1", "64:ff9b:1::7f00:1"],
];
const wide = (text: string) =>
  [...text].map((sign) => (sign === "." ? "。" : String.fromCharCode(0xff10 + Number(sign)))).join("");
const hex = (number: number, length = 0) => number.toString(16).padStart(length, "0");

/** The ways to write one IPv4 address in a URL. */
function formsOf(address: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
  const whole = ((a * 256 + b) * 256 + c) * 256 + d;
  const [high, low] = [hex(a * 256 + b), hex(c * 256 + d)];
  return [
    ...[
      address,
      `${address}.`,
      String(whole),
      `0x${hex(whole)}`,
      `0X${hex(whole).toUpperCase()}`,
      `0${whole.toString(8)}`,
    ],
    ...[
      [a, b, c, d].map((part) => `0x${hex(part)}`).join("."),
      [a, b, c, d].map((part) => `0${part.toString(8)}`).join("."),
    ],
    ...[`${a}.${b}.${c * 256 + d}`, `${a}.${(b * 256 + c) * 256 + d}`, `00${a.toString(8)}.0x${hex(b)}.${c}.${d}`],
    ...[wide(address), address.replaceAll(".", "%2e"), `%${hex(address.charCodeAt(0))}${address.slice(1)}`],
    ...[`[::${address}]`, `[::ffff:${address}]`, `[::FFFF:${high}:${low}]`, `[0:0:0:0:0:ffff:${high}:${low}]`],
    ...[`[::ffff:0:${address}]`, `[64:ff9b::${address}]`, `[2002:${high}:${low}::1]`, `[2001:0:${high}:${low}::1]`],
    // An address behind Teredo is written inverted.
    `[2001:0:0:0:0:0:${hex(0xffff - (a * 256 + b))}:${hex(0xffff - (c * 256 + d))}]`,
  ];
}

const NAMES = [
  ...[
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "localhost.localdomain.localhost",
    "redis",
    "postgres",
    "db",
  ],
  ...[
    "metadata",
    "metadata.google.internal",
    "instance-data.ec2.internal",
    "printer.local",
    "router.local.",
    "x.internal.",
  ],
];
const SCHEMES = [
  ...[
    "file:///etc/passwd",
    "ftp://127.0.0.1/",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "dict://127.0.0.1:6379/",
    "ldap://127.0.0.1/",
  ],
  ...[
    "ws://127.0.0.1/",
    "wss://127.0.0.1/",
    "javascript:alert(1)",
    "data:text/plain,x",
    "blob:http://127.0.0.1/x",
    "//127.0.0.1/",
  ],
  ...[
    "unix:/var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "jar:http://127.0.0.1/!/",
    "",
    "http://",
    "127.0.0.1",
  ],
];
/** Where databases, caches, mail and remote shells listen. */
const PORTS = [
  ...[
    1, 7, 9, 19, 21, 22, 23, 25, 53, 69, 110, 111, 123, 135, 137, 139, 143, 161, 389, 445, 465, 512, 514, 587, 636, 873,
  ],
  ...[1433, 1521, 2049, 2375, 2376, 2379, 3000, 3306, 3389, 4001, 5000, 5432, 5601, 5672, 5900, 5984, 6379, 6443, 7001],
  ...[8000, 8081, 8086, 8500, 8888, 9000, 9090, 9092, 9200, 9300, 10250, 11211, 15672, 27017, 50070, 65535],
];

/** Listens on all of the machine's addresses, at a port where targets may be. */
let inside: Server;
/** An allowed target, which sends its callers inward. */
let allowed: Server;
let port: number;
/** Connections that came in where none may. */
let arrived = 0;
let cases = 0;
/** Each redirect that the allowed target answers with. */
let redirect: { status: number; location: string } | null = null;

beforeAll(async () => {
  inside = createServer((_, reply) => reply.end("inside"));
  inside.on("connection", () => {
    arrived += 1;
  });
  port = await listenAtFirst(inside, [8080, 8443, 80, 443]);
  allowed = createServer((_, reply) => {
    if (redirect) reply.writeHead(redirect.status, { location: redirect.location });
    reply.end();
  });
  await new Promise<void>((resolve) => allowed.listen(0, "127.0.0.2", resolve));
});
afterAll(async () => {
  for (const server of [inside, allowed]) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  printFigures("forgery", { cases, arrived });
});

async function listenAtFirst(server: Server, ports: readonly number[]): Promise<number> {
  for (const port of ports) {
    const error = await new Promise<Error | null>((resolve) => {
      server.once("error", resolve);
      server.listen(port, "::", () => resolve(null));
    });
    if (error === null) return port;
  }
  throw new Error(`Each of the ports ${ports.join()} is taken: nothing can be proved`);
}

/** Asks for all of these, and expects that each is refused and none has arrived. */
async function refuses(urls: readonly string[], answers: () => LookupAddress[] = () => []): Promise<void> {
  const config = testConfig(
    { database: NOWHERE.database, redis: { url: NOWHERE.redis, prefix: "{test}" }, upstream: NOWHERE.upstream },
    { TARGETS_ALLOWED: "127.0.0.2" },
  );
  const client = new TargetClient({ config, clock: { now: () => new Date() } }, async () => answers());
  const request = { headers: { "x-github-event": "star" }, body: Buffer.from("{}") };
  const let_in: string[] = [];
  try {
    for (const url of urls) {
      cases += 1;
      if (isAccepted(await client.post({ url, insecureSsl: true }, request))) let_in.push(url);
    }
  } finally {
    await client.close();
  }
  expect(let_in).toEqual([]);
  expect(arrived).toBe(0);
}

const at = (host: string, scheme = "http") => `${scheme}://${host}:${port}/`;

test("the listener is one that would be reached", async () => {
  expect((await fetch(at("127.0.0.1"))).status).toBe(200);
  expect((await fetch(at("[::1]"))).status).toBe(200);
  expect(arrived).toBeGreaterThanOrEqual(2);
  inside.closeAllConnections();
  arrived = 0;
});

test("an inward address arrives in no form that a URL may give it", async () => {
  const forms = INWARD_V4.flatMap(formsOf);
  const six = INWARD_V6.flatMap((address) => [`[${address}]`, `[${address.toUpperCase()}]`, `[${address}%25lo]`]);
  await refuses([...forms, ...six].flatMap((form) => [at(form), at(form, "https")]));
});

test("a name that is not of the public Internet does not arrive, though it leads there", async () => {
  await refuses(
    NAMES.flatMap((name) => [at(name), at(name, "https")]),
    () => [{ address: "127.0.0.1", family: 4 }],
  );
});

test("a public name that leads inward arrives at none of its addresses, by either family", async () => {
  const four = INWARD_V4.map((address) => ({ address, family: 4 }));
  const mapped = INWARD_V4.flatMap((address) =>
    [`::ffff:${address}`, `64:ff9b::${address}`].map((wrapped) => ({ address: wrapped, family: 6 })),
  );
  const six = INWARD_V6.map((address) => ({ address, family: 6 }));
  for (const one of [...four, ...mapped, ...six]) await refuses([at("rebound.example")], () => [one]);
  await refuses([at("rebound.example")], () => [...four, ...mapped, ...six]);
  for (const odd of ["", "localhost", "127.1", "2130706433", "0x7f.1"])
    await refuses([at("rebound.example")], () => [{ address: odd, family: 4 }]);
});

test("a name that led where it may, and then leads inward, is judged again", async () => {
  const outward = { address: "127.0.0.2", family: 4 };
  // The server inside gives up the other address. Otherwise it would receive the requests to the allowed one.
  await new Promise<void>((resolve) => inside.close(() => resolve()));
  await new Promise<void>((resolve) => inside.listen(port, "127.0.0.1", resolve));
  for (const address of INWARD_V4) {
    const inward = { address, family: 4 };
    // The name resolves inward at every second question, or to both addresses at once. Of two, only the allowed
    // address is asked, and it refuses this port.
    let asked = 0;
    const url = `http://rebound.example:${port}/`;
    await refuses([url, url, url, url], () => [++asked % 2 === 1 ? outward : inward]);
    await refuses([url, url], () => [inward, outward]);
  }
});

test("no redirect is followed, whatever its status, to any address", async () => {
  const { port: own } = allowed.address() as AddressInfo;
  for (const status of [301, 302, 303, 307, 308])
    for (const location of [at("127.0.0.1"), at("[::1]"), at("2130706433"), at("localhost"), `//127.0.0.1:${port}/`]) {
      redirect = { status, location };
      await refuses([`http://127.0.0.2:${own}/`]);
    }
  redirect = null;
});

test("other schemes, credentials in the address and ports of other services are refused", async () => {
  const credentials = ["user@", "user:password@", "127.0.0.1@", ":@"].flatMap((who) => [
    at(`${who}127.0.0.1`),
    at(`${who}rebound.example`),
  ]);
  const ports = PORTS.flatMap((other) => [`http://rebound.example:${other}/`, `https://rebound.example:${other}/`]);
  const tricks = [
    "127.0.0.1#@203.0.113.9",
    "203.0.113.9\\@127.0.0.1",
    "203.0.113.9&@127.0.0.1",
    "127.0.0.1\t",
    "\n127.0.0.1",
    "127.0.0.1%00",
  ];
  await refuses([...SCHEMES, ...credentials, ...ports, ...tricks.map((trick) => at(trick))], () => [
    { address: "127.0.0.1", family: 4 },
  ]);
});
