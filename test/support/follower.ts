/**
 * Somebody who hears of nothing but events, and knows from them what upstream has. It follows docs/events.md,
 * "Rebuilding state from events".
 */

// biome-ignore lint/suspicious/noExplicitAny: documents are compared and picked from, not trusted
type Document = any;

/** Clocks may differ by this much before a time counts as one of the future. */
const AHEAD_MS = 5 * 60_000;

/** An event of the feed. */
export interface Heard {
  event: string;
  payload: Document;
  /** When the mirror received it, in ms. */
  receivedAt: number;
  /** The mirror made it of what it found. */
  isMade: boolean;
}

interface Value {
  value: unknown;
  /** The `updated_at` of the event that told it, in ms; null: it has none. */
  at: number | null;
}

/** What is known of one resource: its values by name, and the members of its lists (`label 7`). */
type Known = Map<string, Value>;

const LISTS: Readonly<Record<string, string>> = {
  labels: "label",
  assignees: "assignee",
  requested_reviewers: "requested_reviewer",
};

const KEYS: Readonly<Record<string, readonly string[]>> = {
  label: ["name", "color", "description"],
  milestone: ["title", "description", "due_on", "state"],
  issue: ["title", "body", "state", "locked"],
  pull_request: ["title", "body", "state", "locked", "draft"],
  review: ["body", "state"],
  comment: ["body"],
  repository: ["name", "description", "homepage", "default_branch", "private", "archived"],
};

/** By the event: the kind of its subject, and the key that it stands under. */
const SUBJECTS: Readonly<Record<string, { kind: string; key: string }>> = {
  issues: { kind: "issue", key: "issue" },
  pull_request: { kind: "pull_request", key: "pull_request" },
  issue_comment: { kind: "comment", key: "comment" },
  pull_request_review: { kind: "review", key: "review" },
  pull_request_review_comment: { kind: "comment", key: "comment" },
  label: { kind: "label", key: "label" },
  milestone: { kind: "milestone", key: "milestone" },
  repository: { kind: "repository", key: "repository" },
};

/** The lists of upstream's state, with the event that tells of their members. */
const COLLECTIONS: readonly [list: string, event: string][] = [
  ["labels", "label"],
  ["milestones", "milestone"],
  ["issues", "issues"],
  ["pulls", "pull_request"],
  ["comments", "issue_comment"],
  ["reviews", "pull_request_review"],
  ["review_comments", "pull_request_review_comment"],
];

export function isFollowed(event: string): boolean {
  return Object.hasOwn(SUBJECTS, event);
}

/** The resource that an event is about, as its payload shows it. */
export function subjectOf({ event, payload }: Pick<Heard, "event" | "payload">): Document {
  return payload[SUBJECTS[event]?.key ?? ""] ?? {};
}

export function subjectName(heard: Pick<Heard, "event" | "payload">): string {
  return nameOf(heard.payload.repository?.id, heard.event, subjectOf(heard));
}

function nameOf(repositoryId: unknown, event: string, { id, number }: Document): string {
  return `${repositoryId} ${event} ${event === "issues" || event === "pull_request" ? number : id}`;
}

export class Follower {
  readonly #known = new Map<string, Known>();
  /** Resources that are gone. What is said of them later is late. */
  readonly #gone = new Set<string>();
  /** Resources whose first event was heard. */
  readonly #born = new Set<string>();

  /** Begins with all of a repository, as it was read. */
  begin({ repository, ...lists }: Document): void {
    this.#known.set(nameOf(repository.id, "repository", repository), wholeOf("repository", repository, null));
    for (const [list, event] of COLLECTIONS)
      for (const one of lists[list] ?? []) {
        // A pull request has events of its own, and a review is shown once it is submitted.
        if ((event === "issues" && one.pull_request) || one.state === "PENDING") continue;
        this.#known.set(nameOf(repository.id, event, one), wholeOf(SUBJECTS[event]?.kind ?? "", one, timeOf(one)));
      }
  }

  /** Learns from one event. Answers whether it told anything new. */
  hear({ event, payload, receivedAt, isMade }: Heard): boolean {
    const about = SUBJECTS[event];
    const document = payload[about?.key ?? ""];
    if (!about || !document) return true;
    const name = subjectName({ event, payload });
    const repositoryId = payload.repository?.id;
    const at = timeOf(document);
    // The name of a label begins as the aspect of an issue that has it.
    const isGoneLabel = (aspect: string) => this.#gone.has(`${repositoryId} ${aspect}`);
    const all = new Map([...wholeOf(about.kind, document, at)].filter(([aspect]) => !isGoneLabel(aspect)));
    switch (payload.action) {
      case "opened":
      case "created":
      case "submitted": {
        if (about.kind === "milestone" && payload.action === "opened") break;
        const parent = event === "issue_comment" ? nameOf(repositoryId, "issues", payload.issue) : name;
        if ((this.#gone.has(name) || this.#gone.has(parent)) && !isMade) return false;
        this.#gone.delete(name);
        // Only a transferred issue begins closed. Any other has an event of its closing.
        if (payload.action === "opened" && !payload.changes?.old_issue && all.get("state")?.value === "CLOSED")
          all.set("state", this.#known.get(name)?.get("state") ?? { value: "OPEN", at: null });
        // An issue that was made a pull request.
        if (event === "pull_request") this.#known.delete(nameOf(repositoryId, "issues", document));
        // Events that arrived before this one tell of later changes, so their values win over upstream's. What the mirror
        // makes shows it as it was when it was made: a webhook that was applied just then has told of a later change.
        const known = [...(this.#known.get(name) ?? [])];
        const stays = ({ at: knownAt }: Value) =>
          !isMade || (knownAt !== null && at !== null && knownAt > at && knownAt <= receivedAt + AHEAD_MS);
        this.#known.set(name, new Map([...all, ...known.filter(([, value]) => stays(value))]));
        const isNew = !this.#born.has(name);
        this.#born.add(name);
        return isNew;
      }
      case "deleted":
      case "transferred": {
        // A repository that goes to another owner stays what it is.
        if (event === "repository" && payload.action === "transferred") return true;
        this.#gone.add(name);
        if (event === "label") this.#forgetLabel(document.id);
        if (event === "issues") this.#forgetCommentsOf(repositoryId, document.number);
        return this.#known.delete(name);
      }
    }
    if (this.#gone.has(name)) return false;
    const told = toldBy(payload, all);
    const known = this.#known.get(name) ?? new Map<string, Value>();
    this.#known.set(name, known);
    const news = [...told].filter(([aspect, value]) => {
      if (isGoneLabel(aspect)) return false;
      const before = known.get(aspect);
      const knownAt = before?.at ?? null;
      // A time that lies ahead orders nothing.
      const isOlder = knownAt !== null && knownAt <= receivedAt + AHEAD_MS && at !== null && at < knownAt;
      if (isOlder && !isMade) return false;
      known.set(aspect, { value, at });
      return before?.value !== value && !(before === undefined && value === false);
    });
    return told.size === 0 || news.length > 0;
  }

  #forgetLabel(id: number): void {
    for (const one of this.#known.values()) one.delete(`label ${id}`);
  }

  #forgetCommentsOf(repositoryId: unknown, number: number): void {
    for (const [name, known] of this.#known)
      if (name.startsWith(`${repositoryId} issue_comment `) && known.get("of")?.value === number) {
        this.#known.delete(name);
        this.#gone.add(name);
      }
  }

  /** What differs from all of a repository, as it was read. */
  differences(all: Document): string[] {
    const truth = new Follower();
    truth.begin(all);
    const own = [...this.#known.keys()].filter((name) => name.startsWith(`${all.repository.id} `));
    return [...new Set([...own, ...truth.#known.keys()])].flatMap((name) => {
      const [mine, theirs] = [this.#known.get(name), truth.#known.get(name)];
      if (!mine || !theirs) return [`${name} ${mine ? "is gone" : "is there"}`];
      return [...new Set([...mine.keys(), ...theirs.keys()])].flatMap((aspect) => {
        // A member that was taken out is one that is not there.
        const [was, is] = [mine, theirs].map((known) => known.get(aspect)?.value || false);
        return was === is ? [] : [`${name} ${aspect}: ${JSON.stringify(was)} ≠ ${JSON.stringify(is)}`];
      });
    });
  }
}

/** Everything that a document says, in the form in which events tell it. */
function wholeOf(kind: string, document: Document, at: number | null): Known {
  const known: Known = new Map();
  const set = (aspect: string, value: unknown) => known.set(aspect, { value, at });
  for (const key of KEYS[kind] ?? []) if (document[key] !== undefined) set(key, plain(key, document[key]));
  for (const [list, name] of Object.entries(LISTS))
    for (const one of document[list] ?? []) set(`${name} ${one.id}`, true);
  if (kind === "comment" && document.issue_url) set("of", Number(document.issue_url.split("/").at(-1)));
  if (kind === "issue" || kind === "pull_request") set("milestone", document.milestone?.id ?? null);
  if (kind === "pull_request") {
    set("head", document.head.sha);
    set("base", document.base.ref);
  }
  if (kind === "repository" && document.topics) set("topics", JSON.stringify(document.topics));
  return known;
}

/** Texts that are null and empty say the same, and reviews write their states in capitals or not. */
function plain(key: string, value: unknown): unknown {
  if (key === "state") return String(value).toUpperCase();
  return ["body", "description", "homepage"].includes(key) ? (value ?? "") : value;
}

function timeOf(document: Document): number | null {
  const at = Date.parse(document.updated_at ?? "");
  return Number.isNaN(at) ? null : at;
}

/** What an event tells by its action. Whatever else its payload shows has events of its own. */
function toldBy(payload: Document, all: Known): Map<string, unknown> {
  const { action } = payload;
  const of = (...aspects: string[]) =>
    new Map(aspects.filter((one) => all.has(one)).map((one) => [one, all.get(one)?.value] as const));
  const member = (list: string, isOne: boolean) => {
    const id = payload[list]?.id;
    // The event does not name the label if the label itself was deleted.
    return id === undefined ? new Map<string, unknown>() : new Map([[`${list} ${id}`, isOne]]);
  };
  switch (action) {
    case "edited":
      return of(...Object.keys(payload.changes ?? {}));
    case "renamed":
      return of("name");
    case "labeled":
    case "unlabeled":
      return member("label", action === "labeled");
    case "assigned":
    case "unassigned":
      return member("assignee", action === "assigned");
    case "review_requested":
    case "review_request_removed":
      return member("requested_reviewer", action === "review_requested");
    case "milestoned":
    case "demilestoned":
      return new Map([["milestone", action === "milestoned" ? payload.milestone.id : null]]);
    case "synchronize":
      return of("head");
    case "opened":
    case "closed":
    case "reopened":
      return of("state");
    case "dismissed":
      return new Map([["state", "DISMISSED"]]);
    case "locked":
    case "unlocked":
      return new Map([["locked", action === "locked"]]);
    case "converted_to_draft":
    case "ready_for_review":
      return new Map([["draft", action === "converted_to_draft"]]);
    case "archived":
    case "unarchived":
      return new Map([["archived", action === "archived"]]);
    case "privatized":
    case "publicized":
      return new Map([["private", action === "privatized"]]);
    default:
      return new Map();
  }
}
