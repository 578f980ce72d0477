import type { Context } from "../../context.ts";
import { type Fields, isObject, type Json, objectOf } from "../../json.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { requireList } from "../../mirror/store/observation.ts";
import { forgetPeople, type PeopleListKey, type PeoplePage, storePeople } from "../../mirror/store/people.ts";
import { replaceValidators } from "../../upstream/conditional/validators.ts";
import { UpstreamRefusedError } from "../../upstream/protocol/errors.ts";
import { pages } from "../../upstream/protocol/pagination.ts";
import type { Validator } from "../../upstream/protocol/upstream.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { PAGE_SIZE, sightingOf } from "../reads/pages.ts";

/** A longer list is not held: one transaction stores it. */
const MOST_PAGES = 200;

/**
 * Reads a list to its end and stores it whole. Unchanged pages cost nothing. If upstream does not show the list to the
 * mirror, that is noted instead, and nobody asks again before the list is due.
 * @param path the list's first page
 * @param isHeld whether its rows are here, so that an unchanged page needs no others
 * @throws RemovedError when the repository for which it is read is removed meanwhile
 */
export async function fetchAndStorePeople(
  ctx: Context,
  repository: MirroredRepository,
  { key, path, isHeld }: { key: PeopleListKey; path: string; isHeld: boolean },
): Promise<void> {
  const startedAt = ctx.clock.now();
  const walked = await walk(ctx, path, isHeld);
  await whileMirrored(ctx, repository, async (tx) => {
    if (walked === null) return await forgetPeople(tx, key, startedAt);
    const sighting = (seenAt: Date) => {
      const { repository: home, ...at } = sightingOf(ctx, repository, seenAt);
      return key.repositoryId > 0 && home ? { ...at, repository: home } : at;
    };
    const stored = await storePeople(tx, key, { pages: walked.pages, pageSize: PAGE_SIZE, startedAt, sighting });
    if (stored === "stored") await replaceValidators(tx, walked.validators);
  });
}

/** Null: upstream does not show the list, or it is too long. */
async function walk(
  ctx: Context,
  first: string,
  isHeld: boolean,
): Promise<{ pages: PeoplePage[]; validators: Validator[] } | null> {
  const read: PeoplePage[] = [];
  const validators: Validator[] = [];
  try {
    for await (const page of pages(ctx.upstream, first, { priority: "refresh", conditional: isHeld, anew: !isHeld })) {
      if (page.kind === "moved" || page.kind === "missing" || read.length === MOST_PAGES) return null;
      const rows = page.kind === "ok" ? rowsIn(page.path, page.body) : null;
      read.push({ rows, seenAt: page.seenAt });
      if (page.kind === "ok" && page.validator) validators.push({ ...page.validator, next: page.links.next ?? null });
    }
  } catch (error) {
    if (error instanceof UpstreamRefusedError && error.status === 403) return null;
    throw error;
  }
  return { pages: read, validators };
}

/** The rows of a page. A team alone is a list of one. */
function rowsIn(path: string, body: Json): Fields[] {
  return isObject(body) ? [body] : requireList(path, body).map(objectOf);
}
