/** What GraphQL sums up of the checks of a pull request's head. */
export interface Sums {
  totalCount: number;
  checkRunCount: number;
  statusContextCount: number;
  checkRunCountsByState: { state: string; count: number }[] | null;
  statusContextCountsByState: { state: string; count: number }[] | null;
}

const SUMS = `totalCount checkRunCount statusContextCount
  checkRunCountsByState { state count } statusContextCountsByState { state count }`;

/** Without a list: a hundred heads cost a point. */
export const HEAD = `headRefOid statusCheckRollup { contexts { ${SUMS} } }`;

export interface Head {
  headRefOid: string;
  statusCheckRollup: { contexts: Sums } | null;
}

/**
 * The same, with the ids of statuses and the start of runs, which webhooks lack. A hundred heads by their global ids
 * cost a point, too.
 */
export const HEAD_WITH_IDS = `headRefOid statusCheckRollup { contexts(first: 100) { ${SUMS}
  nodes { __typename ... on StatusContext { id context state createdAt }
    ... on CheckRun { id status startedAt checkSuite { id status updatedAt } } } } }`;

interface ShownStatus {
  __typename: "StatusContext";
  id: string;
  context: string;
  state: string;
  createdAt: string;
}

interface ShownRun {
  __typename: "CheckRun";
  id: string;
  status: string;
  startedAt: string | null;
  checkSuite: { id: string; status: string; updatedAt: string };
}

export type ShownCheck = ShownStatus | ShownRun;

export interface HeadWithIds {
  headRefOid: string;
  repository: { databaseId: number };
  statusCheckRollup: { contexts: Sums & { nodes: (ShownCheck | null)[] } } | null;
}
