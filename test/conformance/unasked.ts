import { PART_OPERATIONS } from "../../src/api/operations.ts";
import type { Exchange } from "./exchanges.ts";
import { isServed, patternOf } from "./session-mirror.ts";

/** Why the mirror is not asked a recorded request. */
interface UnaskedRule {
  name: string;
  is(exchange: Exchange): boolean;
}

const parts = PART_OPERATIONS.filter(({ route }) => route.method === "GET").map(patternOf);

function isOfPart({ method, path }: Exchange): boolean {
  return method === "GET" && parts.some((part) => part.test(path.split("?")[0] as string));
}

function asks(pattern: RegExp): UnaskedRule["is"] {
  return (exchange) => !isServed(exchange) && pattern.test(`${exchange.method} ${exchange.path.split("?")[0]}`);
}

const REPOSITORY = "/(repos/[^/]+/[^/]+|repositories/\\d+)";

/** People who may be assigned, issues of a milestone, topics and reviewers that nothing else in their sessions shows. */
const RESTS_ON_MORE: readonly string[] = [
  "/octokit.rb/assignees",
  "/octokit.rb/milestones/2/labels",
  "/<GITHUB_TEST_REPOSITORY>/topics",
  "/pulls/1/requested_reviewers",
];

const OF_PEOPLE = asks(
  /^GET .+\/forks$|^[A-Z]+ (.+\/(collaborators|repository_invitations)(\/.+)?|.+\/(invitations|members)|\/teams\/.+|\/user\/(orgs|subscriptions)|\/organizations|\/repositories|\/search\/users)$/,
);

/** Each request that is not asked falls under exactly one of these, as a test holds. */
export const UNASKED: readonly UnaskedRule[] = [
  {
    name: "repositories and organisations are made, changed and deleted at upstream",
    is: asks(
      new RegExp(
        `^(POST /(user|orgs/[^/]+)/repos|(PATCH|DELETE) ${REPOSITORY}|(PATCH|DELETE) /(orgs/[^/]+|user)|POST ${REPOSITORY}/forks|PUT ${REPOSITORY}/topics)$`,
      ),
    ),
  },
  {
    name: "who is invited, and what belongs to an account, is not mirrored",
    is: (exchange) => !isOfPart(exchange) && OF_PEOPLE(exchange),
  },
  {
    name: "reviewers are asked at upstream, which shows them with the pull request",
    is: asks(/^(POST|DELETE) .+\/requested_reviewers$/),
  },
  {
    name: "branches, checks, commits, people and releases are parts that are mirrored where `MIRROR` names them",
    is: isOfPart,
  },
  {
    name: "code is not mirrored",
    is: asks(
      /^([A-Z]+ .+\/(contents|git|tarball|legacy\.tar\.gz|languages)(\/.*)?|[A-Z]+ .+\/branches\/[^/]+\/(protection|rename)|(POST|PATCH|DELETE) .+\/(releases|statuses)(\/.+)?|GET .+\/releases\/.*assets.*)$/,
    ),
  },
  {
    name: "commit comments, reactions and events are not mirrored",
    is: asks(
      new RegExp(
        `^[A-Z]+ (${REPOSITORY}/(comments|events)(/.+)?|.+/(reactions|timeline)(/\\d+)?|(?!.+/issues/).+/events)$`,
      ),
    ),
  },
  {
    name: "secrets, projects, notifications and Markdown are other services",
    is: asks(/^[A-Z]+ (.+\/secrets|.*\/projects(\/.+)?|\/notifications|\/markdown(\/raw)?)$/),
  },
  {
    name: "the recording cut the body off",
    is: (exchange) => isServed(exchange) && exchange.body === undefined,
  },
  {
    name: "the session does not show what the answer rests on",
    is: ({ method, path, body }) =>
      method === "GET" && body !== undefined && RESTS_ON_MORE.some((one) => path.endsWith(one)),
  },
];
