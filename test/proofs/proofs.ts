import type { Proof } from "./proof.ts";
import { CALLER_PROOFS } from "./table/callers.ts";
import { CHANCE_PROOFS } from "./table/chance.ts";
import { QUOTA_PROOFS } from "./table/quota.ts";
import { STORE_PROOFS } from "./table/stores.ts";

/** Every proof, the quick ones first. */
export const proofs: readonly Proof[] = [...QUOTA_PROOFS, ...STORE_PROOFS, ...CHANCE_PROOFS, ...CALLER_PROOFS].toSorted(
  (one, other) => one.minutes - other.minutes,
);
