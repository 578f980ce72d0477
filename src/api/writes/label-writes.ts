/**
 * Writes of labels and milestones: the requests, and their effects. Issues refer to these resources, so issues show a
 * change at once.
 */
import { observe } from "../../mirror/store/observation.ts";
import type { RepositoryAddress } from "./issue-writes.ts";
import type { Write } from "./write.ts";

type LabelKind = "label" | "milestone";
const COLLECTIONS: Readonly<Record<LabelKind, string>> = { label: "labels", milestone: "milestones" };

/** Creates a label or milestone, or edits the one that `below` (`/name`, `/number`) names. */
export function putLabel(kind: LabelKind, { id }: RepositoryAddress, below: string, body: string): Write {
  return {
    method: below === "" ? "POST" : "PATCH",
    path: `/repositories/${id}/${COLLECTIONS[kind]}${below}`,
    body,
    about: [],
    says: ({ answer, at }) => ({ shown: [observe(kind, answer, at)] }),
  };
}

/** Deletes a label. `key` is its id; null: the mirror does not know the label. */
export function removeLabel(kind: LabelKind, { id }: RepositoryAddress, below: string, key: number | null): Write {
  const gone = key === null ? [] : [{ kind, repositoryId: id, key }];
  const path = `/repositories/${id}/${COLLECTIONS[kind]}${below}`;
  return { method: "DELETE", path, body: null, about: gone, says: () => ({ gone }) };
}
