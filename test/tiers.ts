/**
 * The files of `npm run test:quick`, which takes less than a minute: pure parts, the API, the receiver, the merge rule,
 * the upstream client, and a few scenarios.
 */
export const QUICK = [
  "test/*.test.ts",
  "test/api/{accounts,compression,errors,graphql,graphql-refusals,protocol,proxies,pure,reads,refusals}.test.ts",
  "test/db/{announcement,by-repository,database,distribution,failure,outage,revisions,sql,unfit}.test.ts",
  "test/mirror/{kept,label-lists,merge-rule-cases,merge-rule,public-keys,refs,standings,store}.test.ts",
  "test/receiver/{inbox,together}.test.ts",
  "test/simulator/{generate-world,world-rules,rest-resources,rest-pulls,rest-protocol,graphql-resources,webhooks-events}.test.ts",
  "test/upstream/{get,get-failures,graphql,limits,own-budget}.test.ts",
  "test/scenario/{catch-up,freshness}.test.ts",
];

/**
 * The files that `npm test` leaves out, since it has six minutes. They take about three fifths of the time of all: most
 * of them open whole systems with processes of their own, kill them, or compare every kind of change. `npm run proofs
 * long` runs them, and `npm test -- FILE` any of them. Each property of docs/architecture.md keeps tests that run each
 * time.
 */
export const LONG = [
  "test/api/{hostile-callers,stream-ends}.test.ts",
  "test/cli/{app,audit,deliveries,doctor,first-steps,hooks,instance,schema-guard,token,words}.test.ts",
  "test/conformance/{gh,gh-pulls,recordings}.test.ts",
  "test/corpus/corpus.test.ts",
  "test/db/{replicas,roles}.test.ts",
  "test/documents/documents.test.ts",
  "test/events/{chain,chain-unread,feed-kills,found,found-parts,found-storm,hooks-api,killed-worker}.test.ts",
  "test/launcher/{package,start}.test.ts",
  "test/matrix/{forwarded,matrix}.test.ts",
  "test/receiver/{floods,redis-disk,redis-failover}.test.ts",
  "test/scenario/{agents-day,app,checks,checks-simulated,edges,first-copy-of-parts,fleet,floor,give-way}.test.ts",
  "test/scenario/{gone-accounts,isolation,kill-tree,kill-worker,late-webhooks,lifecycle,linked-issues,lists,live,memory}.test.ts",
  "test/scenario/{mergeability,missed-audit,missed-deliveries,missing-parts,partitioned,pull-pages,real-history,refs,releases,removal}.test.ts",
  "test/scenario/{restored,review-comment-counts,selection,shards,snapshots,spent-quota,start-upstream,stores}.test.ts",
  "test/scenario/{threads,told-nothing,traces,transferred-issues,upkeep}.test.ts",
  "test/simulator/access-matrix.test.ts",
  "test/upstream/budget.test.ts",
  "test/workers/{many-workers,processes,schema-guard,stalled,stopped-worker}.test.ts",
];
