/** What of an issue is compared: each change of upstream moves one of these. */
export interface Row {
  number: number;
  title: string;
  state: string;
  comments: number;
  updated_at: string;
  pull_request?: unknown;
}

export interface Answer {
  path: string;
  /** Of its rows; see `digestOf`. */
  shown: string;
  /** Milliseconds of `performance.now()`, before the request was sent. */
  askedAt: number;
}

interface Version {
  /** Milliseconds of `performance.now()`: from then on upstream answered this. */
  since: number;
  digest: string;
}

const PAGE = 30;

/**
 * What upstream answers for the addresses that are read, and since when: the page of a repository's open issues, and
 * single issues. An answer is judged by the moment when it was asked for.
 */
export class Truth {
  readonly #rows = new Map<string, Map<number, Row>>();
  readonly #versions = new Map<string, Version[]>();

  /** @param repository its full name  @param rows all issues of it, pull requests among them */
  begin(repository: string, rows: readonly Row[]): void {
    this.#rows.set(repository, new Map(rows.map((row) => [row.number, row])));
    this.#note(repository, null, Number.NEGATIVE_INFINITY);
  }

  /** @throws Error where there is none */
  row(repository: string, number: number): Row {
    const row = this.#rows.get(repository)?.get(number);
    if (!row) throw new Error(`There is no ${repository}#${number}`);
    return row;
  }

  /** @param now milliseconds of `performance.now()`, once upstream had confirmed the change */
  changed(repository: string, row: Row, now: number): void {
    this.#rows.get(repository)?.set(row.number, row);
    this.#note(repository, row, now);
  }

  /**
   * By how many milliseconds each answer was behind upstream when it was asked for, 0 if it was not. Null: upstream never
   * answered this. To be called once all changes are noted, since an answer may come before upstream's confirmation.
   */
  behind(answers: readonly Answer[]): (number | null)[] {
    return answers.map(({ path, shown, askedAt }) => {
      const versions = this.#versions.get(path) ?? [];
      const at = versions.findLastIndex(({ digest }) => digest === shown);
      return at < 0 ? null : Math.max(0, askedAt - (versions[at + 1]?.since ?? askedAt));
    });
  }

  #note(repository: string, changed: Row | null, since: number): void {
    const rows = [...(this.#rows.get(repository)?.values() ?? [])];
    for (const row of changed === null ? rows : [changed]) this.#add(issuePath(repository, row.number), row, since);
    const open = rows.filter(({ state }) => state === "open").sort((a, b) => b.number - a.number);
    this.#add(listPath(repository), open.slice(0, PAGE), since);
  }

  #add(path: string, body: Row | readonly Row[], since: number): void {
    const versions = this.#versions.get(path) ?? [];
    const digest = digestOf(body);
    if (versions.at(-1)?.digest !== digest) versions.push({ since, digest });
    this.#versions.set(path, versions);
  }
}

export function listPath(repository: string): string {
  return `/repos/${repository}/issues?per_page=${PAGE}`;
}

export function issuePath(repository: string, number: number): string {
  return `/repos/${repository}/issues/${number}`;
}

export function digestOf(body: Row | readonly Row[]): string {
  return [body]
    .flat()
    .map(({ number, title, state, comments, updated_at }) => [number, title, state, comments, updated_at].join(" "))
    .join("\n");
}
