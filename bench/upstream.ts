/** The caller that the benchmarks are to the simulator. */
export const UPSTREAM_HEADERS = { authorization: "Bearer bench-token", "user-agent": "bench" };

const PAGE = 100;

/** All repositories that are no forks. */
export async function repositoriesAt(url: string): Promise<{ id: number; fullName: string }[]> {
  const found: { id: number; fullName: string }[] = [];
  for (let page = 1; ; page++) {
    const path = `/user/repos?per_page=${PAGE}&page=${page}`;
    const answer = await fetch(url + path, { headers: UPSTREAM_HEADERS });
    if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
    const listed = (await answer.json()) as { id: number; full_name: string; fork: boolean }[];
    for (const { id, full_name: fullName, fork } of listed) if (!fork) found.push({ id, fullName });
    if (listed.length < PAGE) return found;
  }
}

/**
 * Gives upstream this many more accounts that see and may write everything, since its pace holds for each account.
 * Answers their tokens and the first account's own, in the form of `UPSTREAM_TOKEN`.
 */
export async function addTokens(url: string, count: number): Promise<string> {
  const tokens = Array.from({ length: count }, (_, at) => `bench-token-${at + 2}`);
  for (const token of tokens)
    await control(url, "POST", "tokens", { token, login: token, repositories: "all", write: true });
  return ["bench-token", ...tokens].join();
}

/** @throws Error for a request that the simulator refuses */
export async function control(upstream: string, method: string, path: string, body?: object): Promise<unknown> {
  const answer = await fetch(`${upstream}/-/${path}`, { method, ...(body ? { body: JSON.stringify(body) } : {}) });
  if (!answer.ok) throw new Error(`${method} /-/${path}: ${answer.status} ${await answer.text()}`);
  return await answer.json();
}
