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

/** The settings that keys are made of. */
interface SealingConfig {
  /** Null: ENCRYPTION_KEY is not set. */
  readonly encryptionKeys: readonly string[] | null;
  readonly webhookSecrets: readonly string[];
}

/** What is sealed for, and for whom. */
interface Sealed {
  purpose: string;
  boundTo: string;
}

/**
 * The secrets that sealing keys are made of, the newest first. The first one seals, and all open. Those of WEBHOOK_SECRET
 * come last: they sealed everything before ENCRYPTION_KEY was set.
 */
function sealingSecrets({ encryptionKeys, webhookSecrets }: SealingConfig): readonly string[] {
  return [...(encryptionKeys ?? []), ...webhookSecrets];
}

/** Seals with the newest key. */
export function sealNewest(config: SealingConfig, { purpose, boundTo }: Sealed, text: string): Buffer {
  return seal(sealingKey(sealingSecrets(config)[0] ?? "", purpose), boundTo, text);
}

/** The text, and the place of the key that sealed it: 0 is the newest. Null: no key that is set sealed it. */
export function openAny(
  config: SealingConfig,
  { purpose, boundTo }: Sealed,
  bytes: Buffer,
): { text: string; place: number } | null {
  for (const [place, secret] of sealingSecrets(config).entries()) {
    try {
      return { text: unseal(sealingKey(secret, purpose), boundTo, bytes), place };
    } catch {
      // Another key sealed it, or nobody's: null says so when none is left.
    }
  }
  return null;
}

/** How the key at a place is called, for operators. */
export function sealingKeyName({ encryptionKeys }: SealingConfig, place: number): string {
  const own = encryptionKeys?.length ?? 0;
  return place < own ? `value ${place + 1} of ENCRYPTION_KEY` : `value ${place - own + 1} of WEBHOOK_SECRET`;
}
