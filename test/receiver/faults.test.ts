import { createHmac } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_PAYLOAD_BYTES } from "../../src/receiver/envelope.ts";
import { signedBy } from "../../src/receiver/reading.ts";
import { eventually } from "../support/patience.ts";
import { OLDER_SECRET, opened, openReceiverWorld, type ReceiverWorld, SECRET, type Sending } from "./receiver-world.ts";

let world: ReceiverWorld;
beforeAll(async () => {
  world = await openReceiverWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const json = JSON.stringify(opened);
const hmac = (body: Uint8Array) => `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`;
const latin1 = Buffer.from('{"title":"caf\xe9"}', "latin1");

describe("a request that is no delivery is refused with what was wrong, and nothing is stored", () => {
  const cases: [string, Sending, number, string][] = [
    ["no signature", { headers: { "x-hub-signature-256": null } }, 401, "X-Hub-Signature-256 is missing"],
    [
      "only the older SHA-1 signature",
      { headers: { "x-hub-signature-256": null, "x-hub-signature": "sha1=ab" } },
      401,
      "X-Hub-Signature-256 is missing",
    ],
    ["a signature of another kind", { headers: { "x-hub-signature-256": "sha1=abcdef" } }, 401, "malformed"],
    [
      "two signatures",
      { headers: { "x-hub-signature-256": `sha256=${"a".repeat(64)}, sha256=${"a".repeat(64)}` } },
      401,
      "malformed",
    ],
    ["a signature of another secret", { secret: "not the secret" }, 401, "does not match"],
    ["an empty body", { body: "" }, 400, "The body is empty"],
    ["a body that is not UTF-8", { body: latin1, headers: { "x-hub-signature-256": hmac(latin1) } }, 400, "not UTF-8"],
    ["another content type", { headers: { "content-type": "text/plain" } }, 415, "text/plain is not supported"],
    ["a content type that cannot be read", { headers: { "content-type": "json" } }, 415, "Content-Type"],
    ["another charset", { headers: { "content-type": "application/json; charset=latin1" } }, 415, "charset latin1"],
    ["a compressed body", { headers: { "content-encoding": "gzip" } }, 415, "Content-Encoding gzip"],
    ["JSON that is cut", { body: json.slice(0, -1) }, 400, "not valid JSON"],
    ["a byte order mark", { body: `\ufeff${json}` }, 400, "not valid JSON"],
    ["nesting without end", { body: "[".repeat(1_000_000) }, 400, "not valid JSON"],
    ["very deep nesting", { body: "[".repeat(600_000) + "]".repeat(600_000) }, 400, "nested more than 64 levels"],
    ["a list", { body: "[]" }, 400, "not a JSON object"],
    ["null", { body: "null" }, 400, "not a JSON object"],
    ["a number", { body: "1" }, 400, "not a JSON object"],
    ["no event", { headers: { "x-github-event": null } }, 400, "X-GitHub-Event is missing"],
    ["an empty event", { headers: { "x-github-event": "" } }, 400, "X-GitHub-Event is missing"],
    [
      "an event that is no name",
      { headers: { "x-github-event": "issues; drop table" } },
      400,
      "X-GitHub-Event is malformed",
    ],
    ["no GUID", { headers: { "x-github-delivery": null } }, 400, "X-GitHub-Delivery is missing"],
    ["a GUID without end", { headers: { "x-github-delivery": "a".repeat(65) } }, 400, "X-GitHub-Delivery is malformed"],
    ["a hook id that is no number", { headers: { "x-github-hook-id": "one" } }, 400, "X-GitHub-Hook-ID is malformed"],
    [
      "a hook id beyond exact numbers",
      { headers: { "x-github-hook-id": "9999999999999999" } },
      400,
      "X-GitHub-Hook-ID is too large",
    ],
    [
      "a form with another field",
      { body: `data=${json}`, headers: { "content-type": "application/x-www-form-urlencoded" } },
      400,
      "exactly one field",
    ],
    [
      "a form with two payloads",
      { body: "payload={}&payload={}", headers: { "content-type": "application/x-www-form-urlencoded" } },
      400,
      "exactly one field",
    ],
    [
      "a form whose payload is no JSON",
      { body: "payload=hello", headers: { "content-type": "application/x-www-form-urlencoded" } },
      400,
      "not valid JSON",
    ],
  ];
  test.each(cases)("%s", async (_name, sending, status, message) => {
    const answer = await world.deliver(sending);
    expect(answer).toMatchObject({ status, body: { message: expect.stringContaining(message) } });
    expect(answer.headers.get("content-type")).toContain("application/json");
    expect(await world.inbox()).toEqual([]);
  });

  test("a request without a signature is told nothing of its other headers, and a wrong one nothing of its body", async () => {
    const headers = { "content-type": "text/plain", "x-github-event": null, "x-hub-signature-256": null };
    expect(await world.deliver({ body: "{", headers })).toMatchObject({ status: 401 });
    expect(await world.deliver({ body: "{", secret: "not the secret" })).toMatchObject({ status: 401 });
  });

  test("a body that says it is too large", async () => {
    const body = Buffer.alloc(MAX_PAYLOAD_BYTES + 1, " ");
    expect(await world.deliver({ body })).toMatchObject({
      status: 413,
      body: { message: expect.stringContaining(`${MAX_PAYLOAD_BYTES} bytes`) },
    });
  });

  test("a body that turns out to be too large", async () => {
    const chunk = new Uint8Array(1024 * 1024);
    let left = 27;
    const body = new ReadableStream({ pull: (stream) => (left-- > 0 ? stream.enqueue(chunk) : stream.close()) });
    const answer = await fetch(`${world.url}/webhooks`, {
      method: "POST",
      body,
      duplex: "half",
      headers: {
        "content-type": "application/json",
        "x-github-event": "issues",
        "x-github-delivery": "a-guid-of-ours",
        "x-hub-signature-256": `sha256=${"0".repeat(64)}`,
      },
    });
    expect(answer.status).toBe(413);
  });

  test("another method", async () => {
    const answer = await fetch(`${world.url}/webhooks`);
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe("POST");
  });

  test("a sender that goes away in the middle leaves nothing behind, and the receiver goes on", async () => {
    const { hostname, port } = new URL(world.url);
    const socket = connect(Number(port), hostname);
    socket.write(
      `POST /webhooks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\nX-GitHub-Event: issues\r\nX-GitHub-Delivery: a-guid-of-ours\r\nX-Hub-Signature-256: sha256=${"0".repeat(64)}\r\nExpect: 100-continue\r\n\r\n`,
    );
    const [asked] = await once(socket, "data");
    expect(String(asked)).toMatch(/^HTTP\/1.1 100 /);
    await new Promise<unknown>((resolve) => socket.write('{"action":', resolve));
    socket.destroy();
    expect(await world.deliver({ headers: { "x-github-event": null } })).toMatchObject({ status: 400 });
    expect(await world.inbox()).toEqual([]);
  });
});

describe("what is legal is taken", () => {
  const last = async () => (await world.inbox()).at(-1);

  test("the largest body there may be", async () => {
    const padding = "x".repeat(MAX_PAYLOAD_BYTES - '{"a":""}'.length);
    // Beside other tests the stores may need longer than their time limit. The sender is then told to come again.
    await eventually(async () => {
      expect(await world.deliver({ body: `{"a":"${padding}"}` })).toMatchObject({ status: 202 });
    });
    expect((await last())?.payload.length).toBe(MAX_PAYLOAD_BYTES);
  });

  test("a body signed with the older secret, while secrets are being changed", async () => {
    expect(await world.deliver({ secret: OLDER_SECRET })).toMatchObject({ status: 202, body: { status: "accepted" } });
  });

  test("NUL, lone surrogates and numbers beyond exactness come out byte for byte", async () => {
    const body =
      '{"action":"a\\u0000b","title":"\\ud800 \\u0000 \u{1f980}","repository":{"id":123456789012345678901}, "n": 1.0}';
    expect(await world.deliver({ body })).toMatchObject({ status: 202 });
    expect(await last()).toMatchObject({ payload: Buffer.from(body), action: null, repository_id: null });
  });

  test("a form: the payload is kept as JSON, the encoding taken off", async () => {
    const document = JSON.stringify({ ...opened, title: "a+b & c=d % \u{1f980}" });
    const body = new URLSearchParams({ payload: document }).toString();
    const guid = crypto.randomUUID();
    const answer = await world.deliver({
      body,
      guid,
      headers: { "content-type": "application/x-www-form-urlencoded" },
    });
    expect(answer).toMatchObject({ status: 202, body: { delivery: guid, status: "accepted" } });
    expect(await last()).toMatchObject({ guid, payload: Buffer.from(document), action: "opened", repository_id: 7 });
  });

  test("no hook id, a charset, and an event without repository", async () => {
    const headers = { "x-github-hook-id": null, "content-type": 'application/json; charset="UTF-8"' };
    expect(await world.deliver({ event: "ping", payload: { zen: "Mind your words." }, headers })).toMatchObject({
      status: 202,
    });
    expect(await last()).toMatchObject({ hook_id: 0, event: "ping", action: null, repository_id: null });
  });

  test("the documented example of a signature", async () => {
    // GitHub docs, "Validating webhook deliveries".
    const signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    const groups = [["another"], ["It's a Secret to Everybody"]];
    expect(await signedBy("Hello, World!", { signature, groups })).toBe(1);
    expect(await signedBy("Hello, World?", { signature, groups })).toBe(-1);
  });
});
