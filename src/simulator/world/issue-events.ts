/** What happened to issues and pull requests. See `records.ts` for what rows are. */
import { OrderedIndex } from "./ordered-index.ts";
import type { Issue, LockReason, Repository, Seconds } from "./records.ts";

/** What an event says beside that it happened: as it was at that time. */
export interface EventDetails {
  readonly label?: { readonly name: string; readonly color: string };
  readonly milestone?: { readonly title: string };
  readonly rename?: { readonly from: string; readonly to: string };
  readonly assigneeId?: number;
  readonly requestedReviewerId?: number;
  readonly lockReason?: LockReason | null;
  readonly stateReason?: string | null;
  readonly dismissed?: { readonly reviewId: number; readonly state: string; readonly message: string | null };
}

export interface IssueEvent {
  readonly id: number;
  readonly issue: Issue;
  /** As REST calls it, such as `labeled`. */
  readonly happened: string;
  readonly actorId: number | null;
  readonly commitId: string | null;
  readonly details: EventDetails;
  readonly createdAt: Seconds;
  deleted: boolean;
}

/** All events, by issue and by repository, in the order of their ids. */
export class IssueEvents {
  readonly byId = new Map<number, IssueEvent>();
  #lastId = 19_000_000_000;
  readonly #ofIssues = new Map<number, readonly IssueEvent[]>();
  readonly #ofRepositories = new Map<number, OrderedIndex<IssueEvent>>();

  /** No randomness is drawn, so that a seed makes the same world with and without events. */
  nextId(): number {
    this.#lastId += 7;
    return this.#lastId;
  }

  add(event: IssueEvent): void {
    this.byId.set(event.id, event);
    this.#ofIssues.set(event.issue.id, [...this.of(event.issue), event]);
    this.ofRepository(event.issue.repository).add(event);
  }

  of({ id }: Issue): readonly IssueEvent[] {
    return this.#ofIssues.get(id) ?? [];
  }

  ofRepository({ id }: Repository): OrderedIndex<IssueEvent> {
    return this.#ofRepositories.getOrInsertComputed(id, () => new OrderedIndex<IssueEvent>((event) => event.id));
  }

  /** The issue is gone, and with it all that happened to it. */
  forget(issue: Issue): void {
    for (const event of this.of(issue)) {
      event.deleted = true;
      this.byId.delete(event.id);
      this.ofRepository(issue.repository).removed();
    }
    this.#ofIssues.delete(issue.id);
  }
}
