import { describe, expect, test } from "vitest";
import { printFigures } from "../support/figures.ts";
import { DIFFERENCE_RULES } from "./difference-rules.ts";
import { type Difference, differencesOf } from "./differences.ts";
import { type Exchange, readFixtures, readRecordings, recordings } from "./exchanges.ts";
import { isServed, openSessionMirror } from "./session-mirror.ts";
import { UNASKED } from "./unasked.ts";

/**
 * What GitHub once answered, asked of the mirror again. Each recorded session is mirrored in its order, and each of its
 * requests goes to the mirror by HTTP: same path, query, body, media type and kind of token. Whatever differs is
 * explained by a rule of `difference-rules.ts`, or fails.
 */
const SOURCES = [
  {
    source: `octokit.rb's recordings ${recordings.reason}`,
    exists: recordings.exists,
    read: readRecordings,
    counted: {
      recorded: 529,
      unasked: {
        "branches, checks, commits, people and releases are parts that are mirrored where `MIRROR` names them": 12,
        "code is not mirrored": 11,
        "commit comments, reactions and events are not mirrored": 31,
        "repositories and organisations are made, changed and deleted at upstream": 213,
        "reviewers are asked at upstream, which shows them with the pull request": 10,
        "secrets, projects, notifications and Markdown are other services": 3,
        "the recording cut the body off": 3,
        "the session does not show what the answer rests on": 4,
        "who is invited, and what belongs to an account, is not mirrored": 24,
      },
      asked: { reads: 58, writes: 160 },
      alike: { reads: 42, writes: 157 },
      differing: {
        "dates of labels": 4,
        "dates of lists": 4,
        "dates of what is embedded": 2,
        "headers of the connection": 218,
        "headers of the recorded token": 8,
        "headers of this mirror": 218,
        "headers that a recording leaves out": 218,
        "headers that the service sends no longer": 208,
        "headers that the service sends since then": 208,
        "headers with a former value": 175,
        "keys of lists of that time": 3,
        "links of lists that were not recorded whole": 7,
        "order of that time": 2,
        "quota of that time": 1,
        "repositories of two people": 2,
        "rows of that time": 1,
        "searches of that time": 4,
        "tags of compressed answers": 56,
        "who closed an issue": 2,
        "words of errors": 5,
      },
    },
  },
  {
    source: "@octokit/fixtures",
    exists: true,
    read: readFixtures,
    counted: {
      recorded: 132,
      unasked: {
        "branches, checks, commits, people and releases are parts that are mirrored where `MIRROR` names them": 6,
        "code is not mirrored": 35,
        "repositories and organisations are made, changed and deleted at upstream": 34,
        "secrets, projects, notifications and Markdown are other services": 15,
        "who is invited, and what belongs to an account, is not mirrored": 5,
      },
      asked: { reads: 13, writes: 24 },
      alike: { reads: 5, writes: 24 },
      differing: {
        "an organisation as its owner sees it": 1,
        "dates of labels": 1,
        "headers of the connection": 37,
        "headers of this mirror": 37,
        "headers that the service sends since then": 37,
        "links by cursor": 5,
        "pages of the service": 1,
        "scopes of a redirect": 1,
        "who closed an issue": 5,
        "words of errors": 1,
      },
    },
  },
];

test("no rule is idle", () => {
  const named = (which: "unasked" | "differing") => SOURCES.map(({ counted }) => Object.keys(counted[which]));
  const idle = (rules: readonly { name: string }[], used: string[][]) =>
    rules.map(({ name }) => name).filter((name) => !used.flat().includes(name));
  expect(idle(UNASKED, named("unasked"))).toEqual([]);
  expect(idle(DIFFERENCE_RULES, named("differing"))).toEqual([]);
});

describe.each(SOURCES)("$source", ({ source, exists, read, counted }) => {
  const exchanges = exists ? read() : [];
  const sessions = Map.groupBy(exchanges, ({ session }) => session);
  const asked = exchanges.filter((exchange) => reasonsOf(exchange).length === 0);
  const answered = new Map<Exchange, Difference[]>();

  test.skipIf(!exists)("a request is asked, or one rule says why not", () => {
    const odd = exchanges.filter((exchange) => {
      const reasons = reasonsOf(exchange).length;
      return reasons > 1 || (reasons === 0 && !isServed(exchange));
    });
    expect(odd.map(({ method, path }) => [method, path])).toEqual([]);
  });

  const toAsk = [...sessions].filter(([, each]) => each.some((exchange) => asked.includes(exchange)));
  test.skipIf(!exists).each(toAsk)("%s", async (_session, each) => {
    await using mirror = await openSessionMirror(each);
    for (const run of runsOf(each)) {
      for (const exchange of run) await mirror.see(exchange);
      for (const exchange of run)
        if (asked.includes(exchange)) answered.set(exchange, differencesOf(exchange, await mirror.ask(exchange)));
    }
    const unexplained = each.flatMap((exchange) =>
      (answered.get(exchange) ?? [])
        .filter((difference) => !ruleOf(difference, exchange))
        .map((difference) => ({ asked: `${exchange.method} ${exchange.path}`, ...difference })),
    );
    expect(unexplained).toEqual([]);
  });

  test.skipIf(!exists)("so many requests are asked, and so many answers differ by each rule", () => {
    const isAlike = (exchange: Exchange) => (answered.get(exchange) ?? []).every(({ at }) => at.startsWith("header "));
    const figures = {
      recorded: exchanges.length,
      unasked: countBy(exchanges.flatMap(reasonsOf)),
      asked: countBy(asked.map(({ method }) => (method === "GET" ? "reads" : "writes"))),
      alike: countBy(asked.filter(isAlike).map(({ method }) => (method === "GET" ? "reads" : "writes"))),
      differing: countBy(
        [...answered].flatMap(([exchange, differences]) => [
          ...new Set(differences.map((difference) => ruleOf(difference, exchange)?.name ?? "unexplained")),
        ]),
      ),
    };
    printFigures(source, figures);
    expect(answered.size).toBe(asked.length);
    expect(figures).toEqual(counted);
  });
});

function reasonsOf(exchange: Exchange): string[] {
  return UNASKED.filter((rule) => rule.is(exchange)).map(({ name }) => name);
}

function ruleOf(difference: Difference, exchange: Exchange) {
  return DIFFERENCE_RULES.find((rule) => rule.explains(difference, exchange));
}

/** Reads that follow each other show one state; a write stands alone. */
function runsOf(session: readonly Exchange[]): Exchange[][] {
  const runs: Exchange[][] = [];
  for (const exchange of session) {
    const last = runs.at(-1);
    if (last && exchange.method === "GET" && last[0]?.method === "GET") last.push(exchange);
    else runs.push([exchange]);
  }
  return runs;
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names.toSorted()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
