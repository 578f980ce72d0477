/** Callers of a mirror that check each answer against what it says about its age. */
import { setTimeout as delay } from "node:timers/promises";
import type { Simulator } from "../../src/simulator/control/running.ts";
import type { Random } from "../../src/simulator/world/random.ts";
import type { Issue, Repository } from "../../src/simulator/world/records.ts";
import type { History, Shown } from "./history.ts";

const READ_PAUSE_MS = 150;
const READ_PATIENCE_MS = 5_000;

/** What callers were answered in all. */
export interface Reads {
  reads: number;
  /** The reads that were answered with 200. */
  answered: number;
  /** Answers that showed an older state than the one of the moment that they named. */
  older: number;
  /** Answers that showed something that upstream never did. */
  unknown: number;
  complaints: string[];
}

interface Reader {
  url: string;
  token: string;
  random: Random;
  simulator: Simulator;
  repositories: readonly Repository[];
  history: History;
  seen: Reads;
  done: AbortSignal;
}

/** Asks for issues in every way, and checks each answer against what it says about its age. */
export async function read({
  url,
  token,
  random,
  simulator,
  repositories,
  history,
  seen,
  done,
}: Reader): Promise<void> {
  const headers = { authorization: `token ${token}`, "user-agent": "test" };
  while (!done.aborted) {
    const repository = random.pick(repositories);
    const fullName = simulator.world.fullName(repository);
    const issue = random.pick(repository.rows.byNumber.filter((one) => one !== undefined));
    const { path, body, shownIn } = random.pick([single, listed, asked])(fullName, issue.number);
    seen.reads += 1;
    try {
      const method = body === undefined ? "GET" : "POST";
      const signal = AbortSignal.timeout(READ_PATIENCE_MS);
      const answer = await fetch(`${url}${path}`, { method, headers, signal, ...(body === undefined ? {} : { body }) });
      const text = await answer.text();
      const confirmedAt = answer.headers.get("x-tain-confirmed-at");
      if (answer.status === 200) {
        seen.answered += 1;
        // An answer that does not tell its age promises nothing.
        for (const { number, ...shown } of confirmedAt === null ? [] : shownIn(JSON.parse(text))) {
          const which = repository.rows.byNumber[number];
          if (!which) continue;
          const verdict = history.judge(which, shown, Date.parse(confirmedAt ?? ""));
          if (verdict === "held") continue;
          seen[verdict] += 1;
          const complaint = {
            verdict,
            path,
            number,
            shown,
            confirmedAt,
            now: new Date(),
            is: history.versionsOf(which),
          };
          if (seen.complaints.length < 20) seen.complaints.push(JSON.stringify(complaint));
        }
      }
    } catch (error) {
      // No answer came, or none in time. A caller in a partition has to live with that.
      if (!(error instanceof Error && (error.name === "TimeoutError" || error.name === "TypeError"))) throw error;
    }
    await delay(READ_PAUSE_MS);
  }
}

/** A question, and how to read issues from its answer. */
interface Question {
  path: string;
  body?: string;
  shownIn: (answer: unknown) => (Shown & { number: number })[];
}

interface RestIssue {
  number: number;
  title: string;
  state: string;
  updated_at: string;
}

const shownOf = ({ number, title, state, updated_at }: RestIssue) => ({ number, title, state, updatedAt: updated_at });

function single(fullName: string, number: Issue["number"]): Question {
  // The casts here and below trust the dialect's shape, which other tests hold to its schema.
  return { path: `/repos/${fullName}/issues/${number}`, shownIn: (answer) => [shownOf(answer as RestIssue)] };
}

function listed(fullName: string): Question {
  const path = `/repos/${fullName}/issues?state=all&sort=updated&per_page=20`;
  return { path, shownIn: (answer) => (answer as RestIssue[]).map(shownOf) };
}

function asked(fullName: string, number: number): Question {
  const [owner, name] = fullName.split("/");
  const query = `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) {
    issueOrPullRequest(number: $number) {
      ... on Issue { number title state updatedAt } ... on PullRequest { number title state updatedAt } } } }`;
  return {
    path: "/graphql",
    body: JSON.stringify({ query, variables: { owner, name, number } }),
    shownIn: (answer) => {
      const { data } = answer as {
        data?: { repository?: { issueOrPullRequest?: (Shown & { number: number }) | null } };
      };
      const one = data?.repository?.issueOrPullRequest;
      return one ? [{ ...one, state: one.state === "OPEN" ? "open" : "closed" }] : [];
    },
  };
}
