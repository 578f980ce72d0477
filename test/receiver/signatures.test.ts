/** A large body's signature is checked outside of the event loop, by the same rule as a small one's. */
import { sign } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type HookHolder, hookSecret } from "../../src/config/hook-secrets.ts";
import { HeldBody } from "../../src/http/body.ts";
import type { Envelope } from "../../src/receiver/envelope.ts";
import { DeliveryFault } from "../../src/receiver/fault.ts";
import { DeliveryReading } from "../../src/receiver/reading.ts";

const MB = 1024 * 1024;
const SECRETS = ["the newer webhook secret", "the older webhook secret"];
/** What signs a body, as the headers say. */
type Signed = Pick<Envelope, "signature" | "holder">;
const holder: HookHolder = { type: "repository", id: 7 };

let reading: DeliveryReading;
beforeAll(() => {
  reading = new DeliveryReading(SECRETS);
});
afterAll(() => reading.close());

/** As bodies arrive: some of the pieces end in the middle of a character. */
const PIECE_BYTES = 64 * 1024;

/** A large body is given away, so each reading has one of its own. */
function heldBody(bytes: Buffer): HeldBody {
  const pieces = Array.from({ length: Math.ceil(bytes.length / PIECE_BYTES) }, (_, at) =>
    Buffer.from(Uint8Array.from(bytes.subarray(at * PIECE_BYTES, (at + 1) * PIECE_BYTES)).buffer),
  );
  return new HeldBody(pieces, () => {});
}

const read = (text: string | Buffer, signed: Signed, from = "127.0.0.1", by = reading) =>
  by.read(heldBody(Buffer.from(text)), { form: "json", hookId: 1, ...signed }, from);

const of = (bytes: number) => JSON.stringify({ text: "ä".repeat((bytes - 20) / 2) });
const signedOf = async (text: string, secret: string) => ({ signature: await sign(secret, text), holder });
const FALSE = { signature: `sha256=${"0".repeat(64)}`, holder };

for (const [size, bytes] of [
  ["small", 1_000],
  ["large", 2 * MB],
] as const) {
  const text = of(bytes);
  const body = Buffer.from(text);

  test(`a ${size} body: by its holder's own secret, by the one before, by the master`, async () => {
    for (const [secret, by] of [
      ...SECRETS.map((master) => [hookSecret(master, holder), holder] as const),
      ...SECRETS.map((master) => [master, null] as const),
    ]) {
      const verified = await read(text, await signedOf(text, secret));
      expect(verified.signer).toEqual(by);
      expect(verified.read.payload.equals(body)).toBe(true);
    }
  });

  test(`a ${size} body: another's secret, or another byte, is refused`, async () => {
    const refused = expect.objectContaining({ status: 401 });
    const another = hookSecret(SECRETS[0] ?? "", { ...holder, id: 8 });
    await expect(read(text, await signedOf(text, another))).rejects.toEqual(refused);
    const changed = Buffer.from(body);
    changed.write("b", 2);
    const signed = await signedOf(text, hookSecret(SECRETS[0] ?? "", holder));
    await expect(read(changed, signed)).rejects.toEqual(refused);
  });
}

test("the event loop turns while the largest body is checked against many secrets", async () => {
  const many = new DeliveryReading(Array.from({ length: 5 }, (_, at) => `webhook secret ${at}`));
  const body = of(25 * MB);
  let turns = 0;
  const count = setInterval(() => turns++, 1);
  await expect(read(body, FALSE, "127.0.0.1", many)).rejects.toBeInstanceOf(DeliveryFault);
  clearInterval(count);
  expect(turns).toBeGreaterThan(20);
  await many.close();
});

test("more large bodies of one hook than can be checked soon are refused, and another's waits for one of them", async () => {
  const some = new DeliveryReading(SECRETS);
  const text = of(MB);
  const body = Buffer.from(text);
  const ended: (number | "another's")[] = [];
  const many = Array.from({ length: 60 }, async () => {
    await read(body, FALSE, "127.0.0.1", some).catch((error: DeliveryFault) => ended.push(error.status));
  });
  const other: HookHolder = { type: "repository", id: 8 };
  const signed = { signature: await sign(hookSecret(SECRETS[0] ?? "", other), text), holder: other };
  expect(await read(body, signed, "127.0.0.1", some)).toMatchObject({ signer: other });
  ended.push("another's");
  await Promise.all(many);
  // On a busy machine, more of them wait for too long.
  expect(ended.filter((one) => one === 503).length).toBeGreaterThanOrEqual(9);
  expect(ended.filter((one) => one !== 503).indexOf("another's")).toBeLessThanOrEqual(1);
  await some.close();
});
