import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** A key for one purpose, made of a secret that only our own processes have. */
export function sealingKey(secret: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", purpose, 32));
}

/** Encrypts a text for one owner, named by `boundTo`. `unseal` fails for any other owner's name. */
export function seal(key: Buffer, boundTo: string, text: string): Buffer {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(boundTo));
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
}

/** @throws Error if another key sealed the bytes, `boundTo` is another owner's name, or the bytes are damaged */
export function unseal(key: Buffer, boundTo: string, bytes: Buffer): string {
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12));
  decipher.setAAD(Buffer.from(boundTo)).setAuthTag(bytes.subarray(12, 28));
  return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString("utf8");
}
