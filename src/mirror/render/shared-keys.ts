import { PEOPLE } from "../../../db/revisions.ts";
import type { SharedKind, TemplateReference } from "../store/template.ts";

/** Which row: labels and milestones belong to a repository, users and repositories to none (0). */
export interface SharedKey {
  kind: SharedKind;
  repositoryId: number;
  id: number;
}

/** A row that a document refers to, and the shape in which it is shown there; null: whole. */
export interface Mentioned {
  key: SharedKey;
  /** Its `sharedName`. */
  name: string;
  shape: string | null;
}

export function mentionedBy(reference: TemplateReference, repositoryId: number): Mentioned {
  const key = keyOf(reference, repositoryId);
  return { key, name: sharedName(key), shape: reference.shape };
}

export function wholeRepository(id: number): Mentioned {
  return { key: { kind: "r", repositoryId: 0, id }, name: `r${id}`, shape: null };
}

export function wholeUser(id: number): Mentioned {
  return { key: { kind: "u", repositoryId: 0, id }, name: `u${id}`, shape: null };
}

/** Which row a reference in a document of this repository stands for. */
export function keyOf({ kind, id }: TemplateReference, repositoryId: number): SharedKey {
  return { kind, repositoryId: kind === "l" || kind === "m" ? repositoryId : 0, id };
}

/** The repository, or `PEOPLE`, whose revision grows when the row changes. */
export function domainOf({ kind, repositoryId, id }: SharedKey): number {
  return kind === "u" ? PEOPLE : kind === "r" ? id : repositoryId;
}

/** The repository whose labels and milestones a row of this key refers to. */
export function labelsHomeOf({ kind, repositoryId, id }: SharedKey): number {
  return kind === "r" ? id : repositoryId;
}

/** The name of a row in maps. */
export function sharedName({ kind, repositoryId, id }: SharedKey): string {
  return kind === "l" || kind === "m" ? `${kind}${repositoryId}/${id}` : `${kind}${id}`;
}
