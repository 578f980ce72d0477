/** The shape of a recorded sequence of REST listings, in the service's own spelling: only the fields that are read. */
import type { AccountType } from "../world/records.ts";

export interface RecordedUser {
  readonly id: number;
  readonly login: string;
  readonly type: AccountType;
  readonly site_admin: boolean;
}

export interface RecordedMilestone {
  readonly id: number;
  readonly number: number;
  readonly title: string;
  readonly description: string | null;
  readonly creator: RecordedUser | null;
  readonly open_issues: number;
  readonly closed_issues: number;
  readonly state: "open" | "closed";
  readonly created_at: string;
  readonly updated_at: string;
  readonly closed_at: string | null;
  readonly due_on: string | null;
}

export interface RecordedIssue {
  readonly id: number;
  readonly number: number;
  readonly title: string;
  readonly body: string | null;
  readonly user: RecordedUser | null;
  readonly labels: readonly {
    readonly id: number;
    readonly name: string;
    readonly color: string;
    readonly default: boolean;
  }[];
  readonly state: "open" | "closed";
  readonly locked: boolean;
  readonly assignees: readonly RecordedUser[];
  readonly milestone: RecordedMilestone | null;
  readonly comments: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly closed_at: string | null;
  readonly pull_request?: object;
}

export interface RecordedEnd {
  readonly label: string;
  readonly ref: string;
  readonly sha: string;
  readonly user: RecordedUser | null;
  readonly repo: { readonly $repo: number } | null;
}

export interface RecordedPull {
  readonly id: number;
  readonly number: number;
  readonly updated_at: string;
  readonly merged_at: string | null;
  readonly merge_commit_sha: string | null;
  readonly head: RecordedEnd;
  readonly base: RecordedEnd;
}

export interface RecordedRepository {
  readonly id: number;
  readonly name: string;
  readonly full_name: string;
  readonly owner: RecordedUser;
  readonly description: string | null;
  readonly homepage: string | null;
  readonly language: string | null;
  readonly fork: boolean;
  readonly default_branch: string;
  readonly stargazers_count: number;
  readonly forks_count: number;
  readonly size: number;
  readonly has_issues: boolean;
  readonly has_wiki: boolean;
  readonly has_pages: boolean;
  readonly created_at: string;
  readonly updated_at: string;
  readonly pushed_at: string | null;
}

interface RecordedStep {
  readonly at: string;
  readonly commit: string;
  readonly issues?: { readonly upsert: readonly RecordedIssue[]; readonly remove: readonly number[] };
  readonly pulls?: { readonly upsert: readonly RecordedPull[]; readonly remove: readonly number[] };
  readonly repos?: readonly RecordedRepository[];
}

export interface Recording {
  readonly repo: string;
  readonly base: { readonly at: string; readonly issues: readonly RecordedIssue[] };
  readonly steps: readonly RecordedStep[];
}
