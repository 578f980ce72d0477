import { globSync } from "node:fs";

/**
 * The files of `npm run test:quick`, which takes less than a minute: pure parts, the API, the receiver, the merge rule,
 * the upstream client, and a few scenarios.
 */
export const QUICK = [
  "test/*.test.ts",
  "test/api/{accounts,compression,errors,graphql,graphql-refusals,protocol,proxies,pure,reads,refusals}.test.ts",
  "test/db/{announcement,by-repository,database,distribution,failure,outage,revisions,sql,unfit}.test.ts",
  "test/mirror/{kept,label-lists,merge-rule-cases,merge-rule,public-keys,refs,repository-versions,store}.test.ts",
  "test/receiver/{inbox,together}.test.ts",
  "test/simulator/{generate-world,world-rules,rest-resources,rest-pulls,rest-protocol,graphql-resources,webhooks-events}.test.ts",
  "test/upstream/{budget-rules,get,get-failures,graphql,limits}.test.ts",
  "test/scenario/{catch-up,freshness}.test.ts",
];

/**
 * The files that `npm test` leaves out, since it has six minutes. They take about three fifths of the time of all: most
 * of them open whole systems with processes of their own, kill them, or compare every kind of change. CI runs a part of
 * them with each commit, `npm run proofs long` all, and `npm test -- FILE` any. Each property of docs/architecture.md
 * keeps tests that run each time.
 */
export const LONG = [
  "test/api/{hostile-callers,nasty-values,stream-ends}.test.ts",
  "test/cli/{app,audit,deliveries,doctor,first-steps,hooks,instance,mcp,schema-guard,sql,token,words}.test.ts",
  "test/conformance/{gh,gh-alone,gh-pulls,recorded-answers,recordings}.test.ts",
  "test/corpus/{beside-attack,corpus,fuzz}.test.ts",
  "test/db/{replicas,roles}.test.ts",
  "test/documents/{documents,own-tokens}.test.ts",
  "test/events/{chain,chain-unread,feed-kills,found,found-parts,found-storm,hooks-api,killed-worker}.test.ts",
  "test/launcher/{instance,package,start}.test.ts",
  "test/matrix/{forwarded,holders,matrix}.test.ts",
  "test/operator/health.test.ts",
  "test/receiver/{floods,redis-disk,redis-failover}.test.ts",
  "test/scenario/{agents-day,app,checks,checks-simulated,clock-put-right,edges,first-copy-of-parts,fleet,floor,give-way}.test.ts",
  "test/scenario/{gone-accounts,history,isolation,issue-events,kill-tree,kill-worker,late-webhooks,lifecycle,linked-issues,lists,live,memory,odd-rows}.test.ts",
  "test/scenario/{mergeability,missed-audit,missed-deliveries,missed-sweep,missing-parts,partitioned,pull-pages,real-history,refs,releases,removal}.test.ts",
  "test/scenario/{restored,review-comment-counts,selection,shards,snapshots,spent-quota,start-demonstration,start-upstream,stores}.test.ts",
  "test/scenario/{threads,told-nothing,told-rows,traces,transferred-issues,upkeep}.test.ts",
  "test/simulator/access-matrix.test.ts",
  "test/upstream/budget.test.ts",
  "test/workers/{many-workers,processes,schema-guard,stalled,stopped-worker}.test.ts",
];

/** In how many parts CI runs the long files. The commit's hash says which part is run with it (`.ci/run`). */
export const LONG_PARTS = 8;

/** The long files that are not in this part. @param part from 1; undefined: none of them is in it */
export function longFilesOutside(part: string | undefined): string[] {
  const files = globSync(LONG).sort();
  if (part === undefined) return files;
  const number = Number(part);
  if (!(Number.isInteger(number) && number >= 1 && number <= LONG_PARTS))
    throw new Error(`TAIN_LONG_PART is a number from 1 to ${LONG_PARTS}, not ${part}`);
  return files.filter((_, at) => at % LONG_PARTS !== number - 1);
}
