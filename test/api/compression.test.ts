import { request } from "node:http";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let repository: string;
let large: string;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 1, issues: 20 });
  repository = `/repos/${world.repositories[0]?.fullName}`;
  large = `${repository}/issues?state=all`;
});
afterAll(() => world?.[Symbol.asyncDispose]());

interface Raw {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  bytes: Buffer;
}

/** The bytes as they travelled. */
function ask(path: string, headers: Record<string, string> = {}, method = "GET", body?: string): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const sent = { "user-agent": "test", authorization: `token ${world.token}`, ...headers };
    const asking = request(world.url + path, { method, headers: sent }, (answer) => {
      const parts: Buffer[] = [];
      answer.on("data", (part: Buffer) => parts.push(part));
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, bytes: Buffer.concat(parts) }),
      );
      answer.on("error", reject);
    });
    asking.on("error", reject);
    asking.end(body);
  });
}

test.each([
  ["br", "br", brotliDecompressSync],
  ["gzip", "gzip", gunzipSync],
  ["gzip, deflate, br;q=1.0", "br", brotliDecompressSync],
  ["gzip;q=1.0, br;q=0", "gzip", gunzipSync],
  ["*", "gzip", gunzipSync],
])("Accept-Encoding: %s travels as %s, and nothing else decides", async (accepted, encoding, unpack) => {
  const plain = await ask(large);
  const packed = await ask(large, { "accept-encoding": accepted, "x-no-compression": "1" });
  expect(packed.headers["content-encoding"]).toBe(encoding);
  expect(unpack(packed.bytes).toString()).toBe(plain.bytes.toString());
  expect(packed.bytes.length).toBeLessThan(plain.bytes.length / 3);
  expect(packed.headers.etag).toBe(`W/${plain.headers.etag}`);
  expect(packed.headers.vary).toBe(plain.headers.vary);
  for (const tag of [packed.headers.etag, plain.headers.etag] as string[]) {
    const again = await ask(large, { "accept-encoding": accepted, "if-none-match": tag });
    expect([again.status, again.bytes.length]).toEqual([304, 0]);
  }
});

test("unpacked where nothing else is taken, where it is small, and where there is nothing", async () => {
  const plain = await ask(large, { "accept-encoding": "identity" });
  expect(plain.headers["content-encoding"]).toBeUndefined();
  expect(plain.headers.etag).toMatch(/^"[0-9a-f]{64}"$/);
  expect(plain.headers["content-length"]).toBe(String(plain.bytes.length));
  const odd = await ask(large, { "accept-encoding": "rot13" });
  expect([odd.status, odd.bytes.toString()]).toEqual([200, plain.bytes.toString()]);
  for (const path of ["/versions", "/repos/no/body", "/zen"]) {
    const small = await ask(path, { "accept-encoding": "gzip, br" });
    expect(small.headers["content-encoding"], path).toBeUndefined();
    expect(String(small.headers.etag ?? '"'), path).toMatch(/^"/);
  }
  const head = await ask(large, { "accept-encoding": "gzip" }, "HEAD");
  expect([head.status, head.bytes.length]).toEqual([200, 0]);
});

test("a tag is weak just where the body travels compressed, also where only its indentation makes it long enough", async () => {
  const people = { "accept-encoding": "gzip", "user-agent": "curl/8.5.0" };
  let crossing = 0;
  for (let perPage = 1; perPage <= 6; perPage++) {
    const path = `${repository}/labels?per_page=${perPage}`;
    const compact = await ask(path);
    const indented = await ask(path, people);
    const isPacked = indented.headers["content-encoding"] === "gzip";
    const length = (isPacked ? gunzipSync(indented.bytes) : indented.bytes).length;
    expect([perPage, isPacked]).toEqual([perPage, length >= 1_024]);
    expect([perPage, indented.headers.etag]).toEqual([perPage, `${isPacked ? "W/" : ""}${compact.headers.etag}`]);
    if (compact.bytes.length < 1_024 && length >= 1_024) crossing += 1;
    const again = await ask(path, { ...people, "if-none-match": String(indented.headers.etag) });
    expect([again.status, again.headers.etag]).toEqual([304, indented.headers.etag]);
  }
  expect(crossing).toBeGreaterThan(0);
});

test("GraphQL's answers travel so too", async () => {
  const query = "{ __schema { types { name fields { name } } } }";
  const packed = await ask(
    "/graphql",
    { "accept-encoding": "gzip", "content-type": "application/json" },
    "POST",
    JSON.stringify({ query }),
  );
  expect(packed.headers["content-encoding"]).toBe("gzip");
  expect(JSON.parse(gunzipSync(packed.bytes).toString())).toHaveProperty("data.__schema");
});
