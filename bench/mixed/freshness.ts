import { setTimeout as delay } from "node:timers/promises";
import type { Problems } from "./problems.ts";
import type { ReadRepository } from "./readers.ts";

export interface Probing {
  mirror: { url: string; headers: Record<string, string> };
  upstream: { url: string; headers: Record<string, string> };
  repositories: readonly ReadRepository[];
  /** Probes in a second, one after the other. */
  perSecond: number;
  problems: Problems;
  signal: AbortSignal;
}

/** A probe without a pause would take the processor time of what is measured. */
const ASK_AGAIN_MS = 10;
const LONGEST_MS = 30_000;

/**
 * Comments upstream on issues, and asks the mirror for each comment until it has it. Answers the milliseconds from when
 * each request to upstream began to the end of the first answer of ours that shows the comment.
 */
export async function probeFreshness(probing: Probing): Promise<number[]> {
  const { upstream, repositories, perSecond, problems, signal } = probing;
  const found: number[] = [];
  for (let probe = 0; !signal.aborted; probe++) {
    const beganAt = performance.now();
    const { id, issues } = repositories[probe % repositories.length] as ReadRepository;
    const number = 1 + (probe % issues);
    const answer = await fetch(`${upstream.url}/repositories/${id}/issues/${number}/comments`, {
      method: "POST",
      headers: upstream.headers,
      body: JSON.stringify({ body: `How long does it take? (${probe})` }),
    });
    const text = await answer.text();
    if (answer.status === 201) {
      const { id: comment } = JSON.parse(text) as { id: number };
      const isShown = await waitForComment(probing, `/repositories/${id}/issues/comments/${comment}`);
      if (isShown) found.push(performance.now() - beganAt);
    } else if (![301, 403, 404, 410].includes(answer.status)) {
      // Those say that the issue is not there any more, or locked.
      problems.add(`comment upstream: ${answer.status}`, text);
    }
    await delay(Math.max(0, beganAt + 1_000 / perSecond - performance.now()));
  }
  return found;
}

/** False: it was deleted upstream before we showed it, or it took too long. */
async function waitForComment({ mirror, upstream, problems }: Probing, path: string): Promise<boolean> {
  const deadline = performance.now() + LONGEST_MS;
  for (;;) {
    const answer = await fetch(mirror.url + path, { headers: mirror.headers });
    const text = await answer.text();
    if (answer.ok) return true;
    if (answer.status !== 404) problems.add(`read comment: ${answer.status}`, `${path}: ${text}`);
    if (performance.now() > deadline) {
      const theirs = await fetch(upstream.url + path, { headers: upstream.headers });
      await theirs.arrayBuffer();
      if (theirs.ok) problems.add("a comment that the mirror did not show", `${path}, within ${LONGEST_MS} ms`);
      return false;
    }
    await delay(ASK_AGAIN_MS);
  }
}
