import type { Stores } from "../../stores.ts";
import type { PageConditions } from "../conditional/conditions.ts";
import { installationOf } from "../credentials/installations.ts";
import type { Candidates, Keyring } from "../credentials/keyring.ts";
import { repositoryOf, Visibility } from "../credentials/visibility.ts";
import { limitOf } from "../quota/headers.ts";
import { messageOf } from "./answer.ts";
import type { Attempts } from "./attempts.ts";
import type { Ask, Attempt } from "./exchange.ts";
import type { GetOptions } from "./upstream.ts";

/** Chooses which credentials are asked for what. */
export class Asking {
  readonly #keyring: Keyring;
  readonly #attempts: Attempts;
  readonly #visibility: Visibility;

  constructor({ clock }: Pick<Stores, "clock">, { keyring, attempts }: { keyring: Keyring; attempts: Attempts }) {
    this.#visibility = new Visibility(clock);
    this.#keyring = keyring;
    this.#attempts = attempts;
  }

  /**
   * Sends a GET by a credential that sees the repository, as far as that is known. Upstream's 404 also means "not for this
   * token": when a credential has never seen the repository, its 404 is checked with the others.
   */
  async get(path: string, options: GetOptions, conditions: PageConditions | null): Promise<Attempt> {
    const { all, preferred } = await this.#candidates(path, options.credential);
    let credentials = this.#visibility.mayBeAsked(path, all);
    const blind: string[] = [];
    for (;;) {
      const attempt = await this.#attempts.repeatedly(
        getAsk({ all: credentials, preferred }, path, options, conditions),
      );
      const { received, credential } = attempt;
      if (received.status !== 404) {
        const isSeen = received.status < 300 || received.status === 304;
        for (const other of blind) if (isSeen) this.#visibility.note(path, other, false);
        if (isSeen) this.#visibility.note(path, credential, true);
        return attempt;
      }
      // What no installation covers is public or hidden from them all, so one of them speaks for all.
      const isStranger = installationOf(credential) !== null && !preferred.includes(credential);
      credentials = credentials.filter(
        (other) => other !== credential && !(isStranger && installationOf(other) !== null),
      );
      const isCertain = repositoryOf(path) === null || this.#visibility.sees(path, credential);
      // Where none sees it, each has been asked. That is not remembered: what is missing now may be there tomorrow.
      if (isCertain || credentials.length === 0) return attempt;
      blind.push(credential);
    }
  }

  /** The credentials for a write. */
  async writers(path: string): Promise<Pick<Ask, "credentials" | "preferred">> {
    await this.#keyring.prepare();
    const { all, preferred } = await this.#keyring.candidates(path, { writes: true });
    return { credentials: all, preferred };
  }

  /**
   * The credentials to ask about a repository by GraphQL, which shows a null where a credential sees nothing: an
   * installation that covers the repository, and the tokens that are known to see it.
   */
  async seeing(repository: number | undefined): Promise<Pick<Ask, "credentials" | "preferred">> {
    const path = repository === undefined ? "/graphql" : `/repositories/${repository}`;
    const { all, preferred } = await this.#candidates(path, undefined);
    if (preferred.length === 0) return { credentials: this.#visibility.mayBeAsked(path, all) };
    const others = all.filter((each) => !preferred.includes(each) && this.#visibility.sees(path, each));
    return { credentials: [...preferred, ...others], preferred };
  }

  async #candidates(path: string, only: string | undefined): Promise<Candidates> {
    await this.#keyring.prepare();
    return only === undefined ? await this.#keyring.candidates(path) : { all: [only], preferred: [] };
  }
}

function getAsk(
  { all, preferred }: Candidates,
  path: string,
  { priority, accept, signal }: GetOptions,
  conditions: PageConditions | null,
): Ask {
  return {
    credentials: all,
    preferred,
    request: { method: "GET", path, headers: accept === undefined ? {} : { accept } },
    demand: { bucket: bucketOf(path), api: "rest", cost: 1, isWrite: false, priority, signal },
    ...(conditions ? { conditions } : {}),
    judge: (answer) => ({
      limit: limitOf(answer.status, answer.headers, messageOf(answer)),
      // GitHub docs: a 304 to an authorised request does not count.
      charged: answer.status === 304 ? 0 : 1,
    }),
  };
}

/** The bucket that a request by REST is charged to, until the answer names it. */
export function bucketOf(path: string): string {
  return path.startsWith("/search/code") ? "code_search" : path.startsWith("/search/") ? "search" : "core";
}
