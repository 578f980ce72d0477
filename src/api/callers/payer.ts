import { createHash } from "node:crypto";

/** A caller with a token, as far as quota is concerned. */
export interface Payer {
  kind: "user";
  /** Names the quota that they draw on: their user's, or their token's own. */
  quotaName: string;
  /** How much a window of that quota holds, mostly an hour's; 0: no limit. Null: what the settings say. */
  hourlyLimit: number | null;
}

/** A caller without a token, told from others by the address. */
export interface Stranger {
  kind: "anonymous";
  address: string;
}

/** A payer and what they are shown. */
export interface Recognised extends Payer {
  /** Callers of one class are shown the same of every repository. */
  class: string;
  /** The scopes of a classic token of upstream's, or of an OAuth App's, as upstream names them; null for any other. */
  scopes: string | null;
}

/** Rights go by value: two tokens with the same ones are of one class. */
export function classOfRights(of: "own" | "upstream", rights: readonly unknown[]): string {
  return createHash("sha256")
    .update(JSON.stringify([of, rights]))
    .digest("base64");
}
