import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ASKED } from "../../src/api/forward/forwarding.ts";
import { type Asking, askAt } from "../support/asking.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

// Which web pages may read the mirror through a browser of those who look at them.

const [ALLOWED, ALSO, OTHER] = ["https://app.example", "http://localhost:3000", "https://evil.example"];

let world: ApiWorld;
let listed: string;
let closed: string;
/** The list of issues of a public repository. */
let path: string;

beforeAll(async () => {
  world = await openApiWorld({ env: { RATE_LIMIT_ANONYMOUS: "0" } });
  listed = await world.openSibling({ CORS_ORIGINS: `${ALLOWED}, ${ALSO}/` });
  closed = await world.openSibling({ CORS_ORIGINS: "none" });
  path = `/repos/${world.repositories.find((each) => !each.private)?.fullName}/issues`;
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** The status and headers by which a browser decides. */
async function seen(base: string, origin: string | undefined, asking: Asking & { method?: string; at?: string } = {}) {
  const { method = "GET", at = path, ...rest } = asking;
  const { status, headers } = await askAt(base, method, at, { ...rest, headers: { ...rest.headers, origin } });
  return {
    status,
    origin: headers.get("access-control-allow-origin"),
    others: [...headers.keys()].filter((name) => /^access-control-(?!allow-origin)/.test(name)),
    variesByOrigin: /\bOrigin\b/.test(headers.get("vary") ?? ""),
  };
}

/** A page, a preflight, faults, GraphQL's refusal, a validator that holds, and our own page. */
const forms: (Asking & { method?: string; at?: string })[] = [
  {},
  { method: "OPTIONS" },
  { at: "/repos/no/body" },
  { at: "/%zz" },
  { headers: { authorization: "Basic x" } },
  { method: "POST", at: "/graphql" },
  { headers: { "if-none-match": "*" } },
  { at: "/-/openapi.json" },
];

describe("by default", () => {
  test("every page may read, as at the service, and no answer varies by it", async () => {
    for (const form of forms)
      for (const origin of [undefined, OTHER])
        expect(await seen(world.url, origin, form), JSON.stringify(form)).toMatchObject({
          origin: "*",
          others: expect.arrayContaining(["access-control-expose-headers"]),
          variesByOrigin: false,
        });
  });
});

/** What the service was seen to name in its answer to a preflight. */
const OF_THE_SERVICE = `Authorization, Content-Type, If-Match, If-Modified-Since, If-None-Match, If-Unmodified-Since,
  Accept-Encoding, X-GitHub-OTP, X-Requested-With, User-Agent, GraphQL-Features, X-Github-Next-Global-ID,
  X-GitHub-Api-Version, X-Fetch-Nonce, Copilot-Integration-Id, DD-CLIENT-TOKEN, X-Client-Application`;

test("a page may send every request header that is read here or forwarded", async () => {
  const { status, headers } = await askAt(world.url, "OPTIONS", path, {
    headers: { origin: OTHER, "access-control-request-headers": "authorization,x-github-api-version" },
  });
  expect(status).toBe(204);
  const allowed = (headers.get("access-control-allow-headers") ?? "").toLowerCase().split(", ");
  const read = ["accept", "authorization", "cache-control", "last-event-id", "prefer", "traceparent"];
  const service = OF_THE_SERVICE.split(/,\s*/).map((name) => name.toLowerCase());
  expect([...service, ...ASKED, ...read].filter((name) => !allowed.includes(name))).toEqual([]);
});

describe("with a list of origins", () => {
  test("those alone are told that they may read, and every answer varies by it", async () => {
    for (const form of forms) {
      for (const origin of [ALLOWED, ALSO])
        expect(await seen(listed, origin, form), JSON.stringify(form)).toMatchObject({
          origin,
          others: expect.arrayContaining(["access-control-expose-headers"]),
          variesByOrigin: true,
        });
      for (const origin of [
        undefined,
        OTHER,
        "null",
        `${ALLOWED}.evil.example`,
        `${ALLOWED}:444`,
        ALLOWED.slice(0, -1),
      ])
        expect(await seen(listed, origin, form), `${JSON.stringify(form)} ${origin}`).toMatchObject({
          origin: null,
          others: [],
          variesByOrigin: true,
        });
    }
  });

  test("a page that is kept is told to each origin anew", async () => {
    for (let time = 0; time < 3; time++)
      for (const [origin, told] of [
        [ALLOWED, ALLOWED],
        [OTHER, null],
        [ALSO, ALSO],
        [undefined, null],
      ] as const)
        for (const token of [null, world.token])
          expect((await seen(listed, origin, { token })).origin, `${origin} ${time}`).toBe(told);
  });

  test("a preflight tells the allowed what they may send", async () => {
    expect((await seen(listed, ALLOWED, { method: "OPTIONS" })).others.sort()).toEqual([
      "access-control-allow-headers",
      "access-control-allow-methods",
      "access-control-expose-headers",
      "access-control-max-age",
    ]);
  });
});

describe("with none", () => {
  test("no answer has a header of CORS, kept pages and preflights included", async () => {
    for (let time = 0; time < 3; time++)
      for (const form of forms)
        for (const origin of [undefined, OTHER])
          expect(await seen(closed, origin, form), JSON.stringify(form)).toMatchObject({
            origin: null,
            others: [],
            variesByOrigin: false,
          });
  });

  test("nor has the answer to what is no HTTP", async () => {
    const { hostname, port } = new URL(closed);
    const socket = connect(Number(port), hostname).end("GARBAGE\r\n\r\n");
    const text = (await socket.setEncoding("utf8").toArray()).join("");
    expect(text).toMatch(/^HTTP\/1.1 400 /);
    expect(text).not.toMatch(/access-control/i);
  });
});
