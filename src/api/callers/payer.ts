import { createHash } from "node:crypto";

/** A caller with a token, as far as quota is concerned. */
export interface Payer {
  kind: "user";
  /** Names the quota that they draw on: their user's, or their token's own. */
  quotaName: string;
  /**
   * How much one window of the quota holds, mostly an hour's. 0: there is no limit. Null: the settings say how much.
   */
  hourlyLimit: number | null;
}

/** A caller without a token. Strangers are told apart by their addresses. */
export interface Stranger {
  kind: "anonymous";
  address: string;
}

/** A payer, and the class that decides what they are shown. */
export interface Recognised extends Payer {
  /** Callers of one class are shown the same of every repository. */
  class: string;
  /**
   * The scopes of upstream's classic tokens and OAuth Apps' tokens, as upstream names them. Null for all other tokens.
   */
  scopes: string | null;
}

/** Names a class by its rights: two tokens with the same rights are of one class. */
export function classOfRights(of: "own" | "upstream", rights: readonly unknown[]): string {
  return createHash("sha256")
    .update(JSON.stringify([of, rights]))
    .digest("base64");
}
