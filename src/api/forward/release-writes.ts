import { findReleaseOfAsset } from "../../mirror/read/releases.ts";
import type { ApiContext } from "../call.ts";
import type { Thing, Touched } from "./forwarded-writes.ts";

/**
 * What a write to such a path below a repository changes of its releases. The answer to the write of a release is the release. One
 * whose asset is written is read again, since no answer shows it.
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
