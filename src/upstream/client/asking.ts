import type { PageConditions } from "../conditional/conditions.ts";
import { installationOf } from "../credentials/installations.ts";
import type { Candidates, Keyring } from "../credentials/keyring.ts";
import { repositoryPathIn, type Visibility } from "../credentials/visibility.ts";
import { messageOf } from "../protocol/answer.ts";
import { SETTLED } from "../protocol/doubts.ts";
import { limitOf } from "../protocol/headers.ts";
import type { GetOptions } from "../protocol/upstream.ts";
import { type AttemptContext, askRepeatedly } from "./attempts.ts";
import type { Attempt, UpstreamRequest } from "./exchange.ts";

export interface AskingContext extends AttemptContext {
  visibility: Visibility;
}

/** `opening`: the headers of a request whose answer is forwarded. */
interface AskingOptions extends GetOptions {
  opening?: Record<string, string>;
}

/**
 * Sends a GET with a credential that is known to see the repository, if there is one. Upstream's 404 also means "not
 * for this token". So the 404 of a credential that has never seen the repository is checked with the others.
 */
export async function askByCredentials(
  ctx: AskingContext,
  path: string,
  options: AskingOptions,
  conditions: PageConditions | null,
): Promise<Attempt> {
  const { visibility } = ctx;
  const about = options.repository === undefined ? path : `/repositories/${options.repository}`;
  const { all, preferred } = await candidatesFor(ctx, about, options.credential);
  let credentials = visibility.mayBeAsked(about, all);
  const blind: string[] = [];
  for (;;) {
    const attempt = await askRepeatedly(ctx, getAsk({ all: credentials, preferred }, path, options, conditions));
    const { received, credential } = attempt;
    if (received.status !== 404) {
      const isSeen = received.status < 300 || received.status === 304;
      for (const other of blind) if (isSeen) visibility.note(path, other, false);
      if (isSeen) visibility.note(path, credential, true);
      return attempt;
    }
    // A repository that no installation covers is public, or hidden from all of them. So one installation speaks for
    // all.
    const isStranger = installationOf(credential) !== null && !preferred.includes(credential);
    credentials = credentials.filter(
      (other) => other !== credential && !(isStranger && installationOf(other) !== null),
    );
    const isCertain = repositoryPathIn(path) === null || visibility.sees(path, credential);
    // If no credential sees the resource, all were asked. That is not remembered, since the resource may exist
    // tomorrow.
    if (isCertain || credentials.length === 0) return attempt;
    blind.push(credential);
  }
}

export async function writersOf(
  { keyring }: Pick<AskingContext, "keyring">,
  path: string,
): Promise<Pick<UpstreamRequest, "credentials" | "preferred">> {
  await keyring.prepare(path);
  const { all, preferred } = await keyring.candidates(path, { writes: true });
  return { credentials: all, preferred };
}

/**
 * The credentials to ask about a repository by GraphQL: an installation that covers it, and the tokens known to see it.
 * GraphQL shows null for anything that a credential may not see.
 */
export async function seersOf(
  { keyring, visibility }: Pick<AskingContext, "keyring" | "visibility">,
  repository: number | undefined,
): Promise<Pick<UpstreamRequest, "credentials" | "preferred">> {
  const path = repository === undefined ? "/graphql" : `/repositories/${repository}`;
  const { all, preferred } = await candidatesFor({ keyring }, path, undefined);
  if (preferred.length === 0) return { credentials: visibility.mayBeAsked(path, all) };
  const others = all.filter((each) => !preferred.includes(each) && visibility.sees(path, each));
  return { credentials: [...preferred, ...others], preferred };
}

async function candidatesFor(
  { keyring }: { keyring: Keyring },
  path: string,
  only: string | undefined,
): Promise<Candidates> {
  await keyring.prepare(path);
  return only === undefined ? await keyring.candidates(path) : { all: [only], preferred: [] };
}

function getAsk(
  { all, preferred }: Candidates,
  path: string,
  { priority, caller, accept, signal, opening, isBelieved = priority === "refresh" }: AskingOptions,
  conditions: PageConditions | null,
): UpstreamRequest {
  return {
    credentials: all,
    preferred,
    request: {
      ...{ method: "GET", path },
      headers: { ...(accept !== undefined && { accept }), ...(isBelieved && { prefer: SETTLED }), ...opening },
      ...(opening ? { isOpened: true } : {}),
    },
    demand: { bucket: bucketOf(path), api: "rest", cost: 1, isWrite: false, priority, caller, signal },
    ...(conditions ? { conditions } : {}),
    judge: (answer) => ({
      limit: limitOf(answer.status, answer.headers, messageOf(answer)),
      // GitHub docs: a 304 to an authorised request does not count.
      charged: answer.status === 304 ? 0 : 1,
    }),
  };
}

/** The bucket that a REST request is expected to be charged to. The answer names the true one. */
export function bucketOf(path: string): string {
  return path.startsWith("/search/code") ? "code_search" : path.startsWith("/search/") ? "search" : "core";
}
