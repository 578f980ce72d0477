/**
 * The files of `npm run test:quick`, which takes less than a minute: pure parts, the API, the receiver, the merge rule,
 * the upstream client, and a few scenarios. Everything else is left to `npm test`.
 */
export const QUICK = [
  "test/*.test.ts",
  "test/api/{accounts,compression,description,errors,graphql,graphql-refusals,graphql-rest,media-type,protocol,proxies,pure,reads,refusals,search}.test.ts",
  "test/db/*.test.ts",
  "test/mirror/*.test.ts",
  "test/receiver/{faults,inbox,together}.test.ts",
  "test/simulator/{generate-world,world-rules,rest-resources,rest-pulls,rest-protocol,graphql-resources,webhooks-events}.test.ts",
  "test/upstream/{get,get-failures,conditional,graphql,limits,own-budget}.test.ts",
  "test/scenario/{backfill,catch-up,selection}.test.ts",
];
