/**
 * The files of `npm run test:quick`, which takes less than a minute: pure parts, the API, the receiver, the merge rule,
 * the upstream client, and a few scenarios. Everything else is left to `npm test`.
 */
export const QUICK = [
  "test/*.test.ts",
  "test/api/{accounts,compression,description,errors,graphql,graphql-refusals,protocol,proxies,pure,reads,refusals}.test.ts",
  "test/db/{announcement,by-repository,database,distribution,failure,migrate,outage,revisions,schema,sql,unfit}.test.ts",
  "test/mirror/*.test.ts",
  "test/receiver/{inbox,together}.test.ts",
  "test/simulator/{generate-world,world-rules,rest-resources,rest-pulls,rest-protocol,graphql-resources,webhooks-events}.test.ts",
  "test/upstream/{get,get-failures,graphql,limits,own-budget}.test.ts",
  "test/scenario/{catch-up,freshness,paging}.test.ts",
];
