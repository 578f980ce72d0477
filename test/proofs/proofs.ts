import type { Proof } from "./proof.ts";
import { CALLER_PROOFS } from "./table/callers.ts";
import { FAULT_PROOFS } from "./table/faults.ts";
import { QUOTA_PROOFS } from "./table/quota.ts";
import { STORE_PROOFS } from "./table/stores.ts";

/** Every proof, the quick ones first. */
export const proofs: readonly Proof[] = [...QUOTA_PROOFS, ...STORE_PROOFS, ...FAULT_PROOFS, ...CALLER_PROOFS].toSorted(
  (one, other) => one.minutes - other.minutes,
);
