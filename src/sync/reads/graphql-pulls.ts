/** What GraphQL shows of pull requests, and the same in REST's words. */
export interface Actor {
  __typename: string;
  login: string;
  avatarUrl: string;
  url: string;
  id?: string;
  databaseId?: number | null;
  isSiteAdmin?: boolean;
}

export interface Review {
  id: string;
  fullDatabaseId: string;
  author: Actor | null;
  authorAssociation: string;
  body: string;
  state: string;
  url: string;
  submittedAt: string | null;
  updatedAt: string;
  commit: { oid: string } | null;
}

export interface Mergeability {
  number: number;
  updatedAt: string;
  mergeable: "MERGEABLE" | "CONFLICTING" | "UNKNOWN";
  mergeStateStatus: string;
  canBeRebased: boolean;
  state: "OPEN" | "CLOSED" | "MERGED";
  potentialMergeCommit: { oid: string } | null;
}

export interface Pull extends Mergeability {
  merged: boolean;
  mergedBy: Actor | null;
  maintainerCanModify: boolean;
  additions: number;
  deletions: number;
  changedFiles: number;
  commits: { totalCount: number };
  reviews: { pageInfo: { hasNextPage: boolean }; nodes: Review[] };
}
