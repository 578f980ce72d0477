import { createHash } from "node:crypto";

/** Somebody with a token, as far as their quota is concerned. */
export interface Payer {
  kind: "user";
  /** Names the quota that they draw on: their user's, or one of their token's own. */
  quotaName: string;
  /** Requests, and points, an hour of that quota; 0: no limit. Null: what the settings say. */
  hourlyLimit: number | null;
}

/** Somebody without a token, who is told from others by their address. */
export interface Stranger {
  kind: "anonymous";
  address: string;
}

/** A payer and what they are shown. */
export interface Recognised extends Payer {
  /** Callers of one class are shown the same of every repository. */
  class: string;
}

/** Rights go by value: two tokens with the same ones are of one class. */
export function classOfRights(of: "own" | "upstream", rights: readonly unknown[]): string {
  return createHash("sha256")
    .update(JSON.stringify([of, rights]))
    .digest("base64");
}
