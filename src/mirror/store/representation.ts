import { createHash } from "node:crypto";
import { type Fields, isObject, type Json } from "../../json.ts";
import { type Kind, numberInAddress } from "./resource.ts";

/** Upstream sent something that cannot be what it says it is. */
export class InvalidRepresentationError extends Error {
  override name = "InvalidRepresentationError";
}

/** @throws InvalidRepresentationError, as does every reader here */
export function requireList(path: string, value: Json | undefined): Json[] {
  if (Array.isArray(value)) return value;
  throw new InvalidRepresentationError(`Upstream answers ${path} with something that is not a list`);
}

export function requireObject(kind: Kind, value: Json | undefined): Fields {
  if (isObject(value)) return value;
  throw new InvalidRepresentationError(`This ${kind} is not an object`);
}

export function requireString(kind: Kind, fields: Fields, key: string): string {
  const value = fields[key];
  if (typeof value !== "string") throw new InvalidRepresentationError(`This ${kind} came without ${key}`);
  return value;
}

export function requireRepository(value: Json | undefined): { id: number; fullName: string } {
  const fields = requireObject("repository", value);
  return { id: keyIn("repository", fields), fullName: requireString("repository", fields, "full_name") };
}

/** What the kind is known by: upstream's id, or the number for issues and pull requests. */
export function keyIn(kind: Kind, representation: Json | undefined): number {
  const fields = requireObject(kind, representation);
  if (kind === "label" && fields.id === undefined) return keyOfName(requireString(kind, fields, "name"));
  const name = kind === "issue" || kind === "pull_request" ? "number" : "id";
  const value = fields[name];
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  throw new InvalidRepresentationError(`This ${kind} came without ${name}`);
}

/** The number of what the address is of: a comment or review names its parent so. */
export function requireNumberIn(kind: Kind, fields: Fields, key: "issue_url" | "pull_request_url"): number {
  const number = numberInAddress(fields[key]);
  if (number === null) throw new InvalidRepresentationError(`This ${kind} came without ${key}`);
  return number;
}

/** Labels had no id before 2017, and from an old enterprise server have none still; then the name is all there is. */
function keyOfName(name: string): number {
  return -createHash("sha256").update(name.toLowerCase()).digest().readUIntBE(0, 6);
}
