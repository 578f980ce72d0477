import { createPrivateKey } from "node:crypto";
import { commaList } from "./values.ts";

/** A token is sent in a header, so blanks and non-ASCII characters are refused. The message must not repeat a token. */
export function tokens(text: string): string[] {
  if (text === "") return [];
  const parts = commaList(text);
  if (parts.some((part) => !/^[\x21-\x7e]+$/.test(part))) {
    throw new Error(
      "holds a character that no token has, such as a blank or a quotation mark: separate tokens by commas",
    );
  }
  return parts;
}

/** GitHub docs: either the App's id, a number, or its client id, such as `Iv23abc…`. */
export function appId(text: string): string {
  if (!/^(\d{1,15}|Iv\w{5,40}(\.\w{5,40})?)$/.test(text))
    throw new Error(
      `is neither an App's id nor a client id: ${text} (the App's page shows both, e.g. 123456 or Iv23abc…)`,
    );
  return text;
}

/** Returns the key as PKCS #8, whichever form was given. The message must not repeat any part of the key. */
export function privateKey(text: string): string {
  const isPem = text.includes("-----BEGIN");
  const pem = (isPem ? text : Buffer.from(text, "base64").toString("latin1")).replaceAll("\\n", "\n");
  const right = "give the whole text of the .pem file that GitHub gave for the App";
  if (!pem.includes("-----BEGIN")) throw new Error(`is no private key in PEM: ${right}`);
  if (/-----BEGIN (PUBLIC|RSA PUBLIC|CERTIFICATE)/.test(pem))
    throw new Error(`is a public key, not the private one: ${right}`);
  let key: ReturnType<typeof createPrivateKey>;
  try {
    key = createPrivateKey(pem);
  } catch {
    throw new Error(`cannot be read as a private key (cut off, encrypted or damaged): ${right}`);
  }
  if (key.asymmetricKeyType !== "rsa")
    throw new Error(`is a key of the kind ${key.asymmetricKeyType}, and GitHub's are RSA: ${right}`);
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

/** An attacker could guess a shorter secret by trying all of them. */
const SHORTEST_SECRET = 16;

export function secret(text: string): string {
  if (text.length < SHORTEST_SECRET)
    throw new Error(
      `is too short to be a secret: use at least ${SHORTEST_SECRET} characters, such as \`openssl rand -hex 24\` makes`,
    );
  return text;
}

export function secrets(text: string): string[] {
  return commaList(text).map(secret);
}
