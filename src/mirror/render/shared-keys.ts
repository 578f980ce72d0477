import { PEOPLE } from "../../../db/revisions.ts";
import { referenceOf, type SharedKind, type TemplateReference } from "../store/template.ts";

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

/** What a reference in a document stands for. */
export interface Referred extends Mentioned {
  shape: string;
}

export function mentionedBy(reference: TemplateReference, repositoryId: number): Referred {
  const key = sharedKey(reference, repositoryId);
  return { key, name: sharedName(key), shape: reference.shape };
}

/** Enough for the people and labels that busy repositories name. */
const MAX_REFERENCES = 20_000;

/**
 * Knows what the placeholders in documents stand for (see `referenceOf`). The same placeholders come up in most
 * answers, so their meanings are kept. V8 interns each new string that a map is asked for, which took a twentieth of a
 * list's processor time.
 */
export class References {
  /** By the repository whose rows the placeholders name; 0 for people and repositories. */
  readonly #known = new Map<number, Map<string, Referred>>();
  #count = 0;

  /** As `mentionedBy`, from the reference's placeholder. */
  of(placeholder: string, repositoryId: number): Referred {
    const home = placeholder.startsWith("u") || placeholder.startsWith("r") ? 0 : repositoryId;
    const known = this.#known.get(home)?.get(placeholder);
    if (known) return known;
    if (this.#count >= MAX_REFERENCES) {
      this.#known.clear();
      this.#count = 0;
    }
    const referred = mentionedBy(referenceOf(placeholder), repositoryId);
    this.#known.getOrInsertComputed(home, () => new Map()).set(placeholder, referred);
    this.#count += 1;
    return referred;
  }
}

export function wholeRepository(id: number): Mentioned {
  return { key: { kind: "r", repositoryId: 0, id }, name: `r${id}`, shape: null };
}

export function wholeUser(id: number): Mentioned {
  return { key: { kind: "u", repositoryId: 0, id }, name: `u${id}`, shape: null };
}

/** Which row a reference in a document of this repository stands for. */
export function sharedKey({ kind, id }: TemplateReference, repositoryId: number): SharedKey {
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
