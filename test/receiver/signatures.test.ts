/** A large body's signature is checked outside of the event loop, by the same rule as a small one's. */
import { sign } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type HookHolder, hookSecret } from "../../src/config/hook-secrets.ts";
import { Signatures } from "../../src/receiver/envelope.ts";
import { DeliveryFault } from "../../src/receiver/fault.ts";

const MB = 1024 * 1024;
const SECRETS = ["the newer webhook secret", "the older webhook secret"];
const holder: HookHolder = { type: "repository", id: 7 };

let signatures: Signatures;
beforeAll(() => {
  signatures = new Signatures(SECRETS);
});
afterAll(() => signatures.close());

const of = (bytes: number) => JSON.stringify({ text: "ä".repeat((bytes - 20) / 2) });
const signedOf = async (text: string, secret: string) => ({ signature: await sign(secret, text), holder });

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
      expect(await signatures.require(body, await signedOf(text, secret))).toEqual(by);
    }
  });

  test(`a ${size} body: another's secret, or another byte, is refused`, async () => {
    const refused = expect.objectContaining({ status: 401 });
    const another = hookSecret(SECRETS[0] ?? "", { ...holder, id: 8 });
    await expect(signatures.require(body, await signedOf(text, another))).rejects.toEqual(refused);
    const changed = Buffer.from(body);
    changed.write("b", 2);
    const signed = await signedOf(text, hookSecret(SECRETS[0] ?? "", holder));
    await expect(signatures.require(changed, signed)).rejects.toEqual(refused);
  });
}

test("the event loop turns while the largest body is checked against many secrets", async () => {
  const many = new Signatures(Array.from({ length: 5 }, (_, at) => `webhook secret ${at}`));
  const body = Buffer.from(of(25 * MB));
  let turns = 0;
  const count = setInterval(() => turns++, 1);
  const signed = { signature: `sha256=${"0".repeat(64)}`, holder };
  await expect(many.require(body, signed)).rejects.toBeInstanceOf(DeliveryFault);
  clearInterval(count);
  expect(turns).toBeGreaterThan(20);
  await many.close();
});

test("more large bodies than can be checked soon are refused for now", async () => {
  const some = new Signatures(SECRETS);
  const body = Buffer.from(of(MB));
  const signed = { signature: `sha256=${"0".repeat(64)}`, holder };
  const outcomes = await Promise.all(
    Array.from({ length: 60 }, () => some.require(body, signed).catch((error: DeliveryFault) => error.status)),
  );
  expect(new Set(outcomes)).toEqual(new Set([401, 503]));
  await some.close();
});
