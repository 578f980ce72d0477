import { type Json, objectOf } from "../../json.ts";
import { eachOf, list, nullable, object, type Read, text, whole } from "../../upstream/protocol/field-readers.ts";

const readStates = nullable(list(object({ state: text, count: whole })));
const TOTALS = {
  totalCount: whole,
  checkRunCount: whole,
  statusContextCount: whole,
  checkRunCountsByState: readStates,
  statusContextCountsByState: readStates,
};
const readSums = object(TOTALS);
/** What GraphQL sums up of the checks of a pull request's head. */
export type Sums = Read<typeof readSums>;

const SUMS = `totalCount checkRunCount statusContextCount
  checkRunCountsByState { state count } statusContextCountsByState { state count }`;

/** Without a list: a hundred heads cost a point. */
export const HEAD = `headRefOid statusCheckRollup { contexts { ${SUMS} } }`;

export const readHead = object({ headRefOid: text, statusCheckRollup: nullable(object({ contexts: readSums })) });

/**
 * The same, with the ids of statuses and the start of runs, which webhooks lack. A hundred heads by their global ids
 * cost a point, too.
 */
export const HEAD_WITH_IDS = `headRefOid statusCheckRollup { contexts(first: 100) { ${SUMS}
  nodes { __typename ... on StatusContext { id context state createdAt }
    ... on CheckRun { id status startedAt checkSuite { id status updatedAt } } } } }`;

const readStatus = object({ id: text, context: text, state: text, createdAt: text });
const readRun = object({
  id: text,
  status: text,
  startedAt: nullable(text),
  checkSuite: object({ id: text, status: text, updatedAt: text }),
});

export type ShownCheck =
  | ({ __typename: "StatusContext" } & Read<typeof readStatus>)
  | ({ __typename: "CheckRun" } & Read<typeof readRun>);

function readCheck(value: Json | undefined, name: string): ShownCheck {
  return objectOf(value).__typename === "StatusContext"
    ? { __typename: "StatusContext", ...readStatus(value, name) }
    : { __typename: "CheckRun", ...readRun(value, name) };
}

export const readHeadWithIds = object({
  headRefOid: text,
  statusCheckRollup: nullable(object({ contexts: object({ ...TOTALS, nodes: eachOf(readCheck) }) })),
});
