import { BREAK, type DefinitionNode, Kind, type OperationDefinitionNode, visit } from "graphql";
import type { Encoding } from "../../../http/reply.ts";
import { type Confirmation, joinConfirmations } from "../../../mirror/read/repositories.ts";
import { Kept, type Standings } from "../../../mirror/unchanged/unchanged.ts";
import { classOf, type User } from "../../callers/caller.ts";
import { COMPRESSED } from "../../kept-bodies.ts";

/** A result without errors, which may be given again while nothing that it depends on has changed. */
export interface KeptResult {
  bytes: Buffer;
  /** The result compressed, by encoding, for callers who accept that. */
  encoded: Map<Encoding, Buffer>;
  /** The points that the result costs each caller. */
  points: number;
  /** The repositories whose resources the result shows. */
  shown: readonly number[];
}

/** @param maxBytes 0: nothing is kept */
export function openResults(maxBytes: number): Kept<KeptResult> {
  return new Kept({ maxBytes, bytesOf: ({ bytes }) => bytes.length * COMPRESSED });
}

/** The key of a result: the question and the caller, since some fields show who asks. */
export function resultKey(body: string, { api, caller }: { api: string; caller: User }): string {
  return `${caller.userId} ${classOf(caller)} ${api}\n${body}`;
}

/** Fields that show which repositories there are. No revision tells of that. */
const UNBOUND = new Set(["repositories"]);

/** Whether the operation can show only single repositories and their contents. */
export function isKeepable(definitions: readonly DefinitionNode[], operation: OperationDefinitionNode): boolean {
  if (operation.operation !== "query") return false;
  if (definitions.some((one) => one.kind === Kind.OPERATION_DEFINITION && one !== operation)) return false;
  if (!operation.selectionSet.selections.every((one) => one.kind === Kind.FIELD && one.name.value === "repository"))
    return false;
  let isBound = true;
  for (const definition of definitions)
    visit(definition, {
      Field: ({ name }) => {
        if (!UNBOUND.has(name.value)) return undefined;
        isBound = false;
        return BREAK;
      },
    });
  return isBound;
}

/** Upstream's confirmation of the shown repositories; undefined: one of them may no longer be shown. */
export function confirmationOfKept({ shown }: KeptResult, standings: Standings): Confirmation | undefined {
  const shownNow = shown.flatMap((id) => standings.get(id) ?? []).filter(({ isMirrored }) => isMirrored);
  return shownNow.length === shown.length ? joinConfirmations(shownNow) : undefined;
}
