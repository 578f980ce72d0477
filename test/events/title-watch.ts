/**
 * Asks web processes for the title of a repository's first issue, which is the number of the last change that is told
 * of.
 */
export class TitleWatch {
  /** Answers that were older than the events before them, in words. */
  readonly behind: string[] = [];
  /** How many answers were looked at. */
  asked = 0;
  readonly #fullName: string;
  readonly #headers: Record<string, string>;

  constructor({ fullName, token }: { fullName: string; token: string }) {
    this.#fullName = fullName;
    this.#headers = { authorization: `token ${token}`, "user-agent": "test" };
  }

  /** Asks each process by REST and GraphQL. An answer without the issue is behind, too. */
  async look(webs: readonly string[], told: number): Promise<void> {
    const reads = webs.flatMap((web) => [this.rest(web), this.#graphql(web)]);
    const seen = await Promise.all(reads).catch((error) => [String(error)]);
    this.asked += seen.length;
    for (const title of seen) if (!(Number(title) >= told)) this.behind.push(`${title} after ${told}`);
  }

  async rest(web: string): Promise<string> {
    const answer = await fetch(`${web}/repos/${this.#fullName}/issues/1`, { headers: this.#headers });
    return ((await answer.json()) as { title: string }).title;
  }

  async #graphql(web: string): Promise<string> {
    const [owner, name] = this.#fullName.split("/");
    const query = `{ repository(owner: "${owner}", name: "${name}") { issue(number: 1) { title } } }`;
    const body = JSON.stringify({ query });
    const answer = await fetch(`${web}/graphql`, { method: "POST", headers: this.#headers, body });
    return ((await answer.json()) as { data: { repository: { issue: { title: string } } } }).data.repository.issue
      .title;
  }
}
