import { findReleaseOfAsset } from "../../mirror/read/releases.ts";
import type { ApiContext } from "../call.ts";
import type { Thing, Touched } from "./forwarded-writes.ts";

/**
 * The releases that a write to this path changes. A write of a release answers with the release. After a write of an
 * asset the release is read again, since the answer does not show it.
 */
export async function releasesAt(
  db: ApiContext["db"],
  { repositoryId, method, rest }: { repositoryId: number; method: string; rest: string },
): Promise<Omit<Touched, "repository">> {
  const thing = (key: number, path: string | null): Thing => ({ kind: "release", repositoryId, key, path });
  const [, own] = /^\/releases(?:\/(\d{1,15}))?$/.exec(rest) ?? ["", null];
  if (own !== null) {
    const things = own === undefined ? [] : [thing(Number(own), null)];
    return method === "DELETE" ? { things, says: () => ({ gone: [...things] }) } : { things, shows: "release" };
  }
  const [, of, asset] = /^\/releases\/(?:(\d{1,15})\/assets|assets\/(\d{1,15}))$/.exec(rest) ?? [];
  const id = of ?? (asset === undefined ? null : await findReleaseOfAsset(db, repositoryId, Number(asset)));
  if (id === null) return { things: [] };
  return { things: [thing(Number(id), `/repositories/${repositoryId}/releases/${id}`)] };
}
