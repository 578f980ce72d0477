import type { LoggedEvent } from "../../events/log-reads.ts";
import { type Fields, isObject, type Json, objectOf, wholeOf } from "../../json.ts";
import { isCodeRight, type Right } from "../../kinds/contract/rights.ts";
import { resources } from "../../kinds/registry.ts";
import { type AccessLevel, associationFor, withShown } from "../../mirror/documents/documents.ts";
import {
  type PresentText,
  textKeys,
  type WrittenKind,
  type WrittenText,
  writtenName,
} from "../../mirror/read/present-texts.ts";
import { type AccessScope, type ShownRepository, sees } from "../../mirror/read/repositories.ts";
import { accessLevelOf, accessOf, type Caller, hasMirrorsRights, mayHook, readsCode } from "../callers/permissions.ts";

/** The right that shows an event. "talk": the right to the issue or pull request that is talked about. */
type EventRight = Right | "talk";

/** The right that each event takes. Only hooks hear of all other events: alerts, keys, teams, members … */
const TAKES: ReadonlyMap<string, EventRight> = new Map<string, EventRight>([
  ...resources.flatMap(({ right, events }) => (events && right !== null ? [[events.event, right] as const] : [])),
  ...Object.entries({
    // Of a pull request, another event tells.
    issues: "issues",
    sub_issues: "issues",
    issue_dependencies: "issues",
    issue_comment: "talk",
    pull_request_review_thread: "pulls",
    status: "statuses",
    push: "contents",
    create: "contents",
    delete: "contents",
    commit_comment: "contents",
    fork: "metadata",
    star: "metadata",
    watch: "metadata",
    public: "metadata",
  } as const),
]);

/** Keys of payloads whose values reads of the API show too. */
const DOCUMENTS: ReadonlySet<string> = new Set([
  ...resources.flatMap(({ events }) => events?.in ?? []),
  ..."assignee forkee organization requested_reviewer requested_team sender".split(" "),
]);

/**
 * The right that a key of a payload takes beside its event's, as reads of that kind do. A key that several kinds share
 * is always the subject of its event.
 */
const KEY_TAKES: ReadonlyMap<string, Right> = new Map([
  ...[...Map.groupBy(resources, ({ events }) => events?.in ?? null)].flatMap(([key, [one, ...others]]) =>
    key === null || !one?.right || others.length > 0 ? [] : [[key, one.right] as const],
  ),
  // A status takes another right than its commit and the branches on that.
  ...["branches", "commit", "commits", "head_commit"].map((key) => [key, "contents"] as const),
]);

/** Keys of payloads that say what happened, whoever asks. Unknown keys are left out. */
const TELLING_KEYS: ReadonlySet<string> = new Set(
  `action after base_ref before branches changes commit commits compare context created deleted description forced
   head_commit master_branch name number pusher pusher_type ref ref_type sha starred_at state target_url thread
   updated_at created_at id`.split(/\s+/),
);

/** The kinds of what people wrote, by the keys of payloads. A comment's kind, and what else is shown, depends on the event. */
const WRITTEN: Readonly<Record<string, WrittenKind>> = {
  issue: "issue",
  pull_request: "pull_request",
  review: "review",
  release: "release",
};
const WRITTEN_BY_EVENT: Readonly<Record<string, Readonly<Record<string, WrittenKind>>>> = {
  issue_comment: { comment: "issue_comment" },
  pull_request_review_comment: { comment: "review_comment" },
  label: { label: "label" },
  milestone: { milestone: "milestone" },
};

/** The keys of texts in a document that the mirror does not hold, and so cannot compare with the present. */
const UNHELD_TEXTS: readonly string[] = ["body", "name", "title"];

/** The keys of a document that name it and tell nothing of it. */
const NAMING_KEYS: readonly string[] = ["id", "node_id", "number", "url", "html_url", "issue_url", "pull_request_url"];

/** The actions whose subject upstream shows no more. All other events of such a subject are left out. */
const ENDINGS: ReadonlySet<string> = new Set(["deleted", "transferred"]);

/** Keys of `changes` whose former values upstream shows to all readers of a timeline. */
const SHOWN_CHANGES: ReadonlySet<string> = new Set(["title", "base"]);

/** What a payload shows of what people wrote. The repository is the event's own. */
export function writtenIn({ repositoryId, event }: LoggedEvent, payload: Fields): WrittenText[] {
  const named = Object.entries(payload).flatMap(([key, value]) => writtenAt(repositoryId, event, key, value) ?? []);
  return [...named, ...commentsOf(payload.thread).flatMap((one) => reviewComment(repositoryId, one) ?? [])];
}

function kindAt(event: string, key: string): WrittenKind | null {
  const byEvent = Object.hasOwn(WRITTEN_BY_EVENT, event) ? WRITTEN_BY_EVENT[event] : undefined;
  if (byEvent && Object.hasOwn(byEvent, key)) return byEvent[key] ?? null;
  return Object.hasOwn(WRITTEN, key) ? (WRITTEN[key] ?? null) : null;
}

function writtenAt(repositoryId: number, event: string, at: string, value: Json | undefined): WrittenText | null {
  const kind = kindAt(event, at);
  const { id, number } = objectOf(value);
  const key = wholeOf(kind === "issue" || kind === "pull_request" ? number : id);
  return kind === null || key === null ? null : { repositoryId, kind, key };
}

function commentsOf(thread: Json | undefined): Json[] {
  const { comments } = objectOf(thread);
  return Array.isArray(comments) ? comments : [];
}

function reviewComment(repositoryId: number, comment: Json): WrittenText | null {
  const key = wholeOf(objectOf(comment).id);
  return key === null ? null : { repositoryId, kind: "review_comment", key };
}

/** Keys that tell where an issue moved. The reader may not see the other repository. */
const MOVED: readonly string[] = ["new_issue", "new_repository", "old_issue", "old_repository"];

/** A reader of events, with the rights that they have now. */
export class EventReader {
  readonly #caller: Caller;
  readonly #access: AccessScope;

  constructor(caller: Caller) {
    this.#caller = caller;
    this.#access = accessOf(caller);
  }

  /** Whether the reader hears everything of the repository, as a hook there would. */
  hearsAll({ repositoryId }: Pick<LoggedEvent, "repositoryId">): boolean {
    if (this.#caller.kind !== "user" || this.#caller.by.of !== "own") return false;
    return mayHook(this.#caller.by.token, repositoryId === 0 ? null : repositoryId);
  }

  /**
   * Whether the reader may hear of such events of the repository at all. @param repository null: the reader does not
   * see it
   */
  mayHear(
    { repositoryId, event }: Pick<LoggedEvent, "repositoryId" | "event">,
    repository: ShownRepository | null,
  ): boolean {
    if (this.hearsAll({ repositoryId })) return true;
    const takes = TAKES.get(event);
    if (takes === undefined || repository === null) return false;
    return this.#reads(repository, takes === "talk" ? "issues or pulls" : takes);
  }

  #reads(repository: ShownRepository, right: Right): boolean {
    if (isCodeRight(right)) return readsCode(this.#caller, this.#access, repository, right);
    return sees(this.#access, repository, right);
  }

  /**
   * Whether the reader is shown payloads as upstream sent them: as a hook, or with all rights of the mirror's own
   * account. All others are shown what people wrote as it is now.
   */
  isShownWhole(event: Pick<LoggedEvent, "repositoryId">): boolean {
    return this.hearsAll(event) || hasMirrorsRights(this.#caller);
  }

  /**
   * The payload as JSON, as far as the reader may see it. Null: they may see none of it. `text` is the payload as
   * upstream sent it, `payload` the same parsed, or null if it is too long for that. `mayHear` was asked before.
   * @param present the texts of `writtenIn` as they are now, by `writtenName`
   */
  shown(
    event: LoggedEvent,
    { text, payload, present }: { text: string; payload: Fields | null; present: ReadonlyMap<string, PresentText> },
    repository: ShownRepository | null,
  ): string | null {
    if (this.hearsAll(event)) return text;
    if (repository === null) return null;
    if (event.event === "release" && !this.#seesRelease(payload, repository)) return null;
    if (hasMirrorsRights(this.#caller)) return text;
    if (payload === null) return null;
    if (TAKES.get(event.event) === "talk") {
      const isPull = isObject(objectOf(payload.issue).pull_request);
      if (!sees(this.#access, repository, isPull ? "pulls" : "issues")) return null;
    }
    const accessLevel = accessLevelOf(this.#caller, repository.id);
    const shown: Fields = {};
    for (const [key, given] of Object.entries(payload)) {
      const takes = KEY_TAKES.get(key);
      if (takes !== undefined && !this.#reads(repository, takes)) continue;
      if (key === "changes") shown[key] = this.#shownChanges(given);
      else if (key === "thread") shown[key] = threadNow(event, given, present);
      else if (TELLING_KEYS.has(key)) shown[key] = given;
      else if (DOCUMENTS.has(key)) {
        const value = asNow(event, key, given, present);
        if (value === GONE) return null;
        shown[key] = this.#withoutHidden(
          isObject(value) ? withShown(value, accessLevel) : value,
          repository,
          accessLevel,
        );
      }
    }
    return JSON.stringify(shown);
  }

  /**
   * Whether the reader sees the release. Only those who may push see drafts. Our own tokens change no release, so they
   * see no drafts.
   */
  #seesRelease(payload: Fields | null, { id }: ShownRepository): boolean {
    return objectOf(payload?.release).draft === false || accessLevelOf(this.#caller, id) === "writer";
  }

  /** What was changed. Former values are left out, unless a timeline shows them: they may have been taken back. */
  #shownChanges(changes: Json): Json {
    const told = Object.entries(objectOf(changes)).filter(([key]) => !MOVED.includes(key));
    return Object.fromEntries(told.map(([key, change]) => [key, SHOWN_CHANGES.has(key) ? change : {}]));
  }

  /** The value without repositories that the reader does not see, and without what only some may know of an author. */
  #withoutHidden(value: Json, repository: ShownRepository, accessLevel: AccessLevel): Json {
    if (Array.isArray(value)) return value.map((one) => this.#withoutHidden(one, repository, accessLevel));
    if (!isObject(value)) return value;
    const isRepository = typeof value.full_name === "string" && value.private === true;
    if (isRepository && !sees(this.#access, { id: Number(value.id), isPrivate: true }, "metadata")) return null;
    const shown: Fields = {};
    for (const [key, inner] of Object.entries(value)) {
      if (key === "parent_issue_url" && !String(inner).includes(`/repos/${repository.fullName}/`)) continue;
      shown[key] =
        key === "author_association"
          ? associationFor(inner, accessLevel)
          : this.#withoutHidden(inner, repository, accessLevel);
    }
    return shown;
  }
}

/** Upstream shows the subject of an event no more, and so does the feed. */
const GONE = Symbol("gone");

/** A document of a payload with what people wrote as it is now. */
function asNow(
  { repositoryId, event, action }: LoggedEvent,
  key: string,
  value: Json,
  present: ReadonlyMap<string, PresentText>,
): Json | typeof GONE {
  if (!isObject(value)) return value;
  const written = writtenAt(repositoryId, event, key, value);
  const isUncertain = written === null && (kindAt(event, key) !== null || key === "comment");
  const now = written && present.get(writtenName(written));
  if (now === "deleted") return action !== null && ENDINGS.has(action) ? named(value) : GONE;
  if (now) return { ...value, ...pick(now, Object.keys(value)) };
  return written || isUncertain ? withoutTexts(value, written?.kind ?? null) : value;
}

function named(value: Fields): Fields {
  return pick(value, NAMING_KEYS);
}

function pick(value: Fields, keys: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(value).filter(([key]) => keys.includes(key)));
}

function withoutTexts(value: Fields, kind: WrittenKind | null): Fields {
  const texts = kind === null ? UNHELD_TEXTS : textKeys(kind);
  return Object.fromEntries(Object.entries(value).filter(([key]) => !texts.includes(key)));
}

/** A thread of review comments, without those that upstream shows no more. */
function threadNow({ repositoryId }: LoggedEvent, thread: Json, present: ReadonlyMap<string, PresentText>): Json {
  if (!isObject(thread)) return thread;
  const comments = commentsOf(thread).flatMap((comment) => {
    const written = reviewComment(repositoryId, comment);
    const now = written && present.get(writtenName(written));
    if (now === "deleted" || !isObject(comment)) return [];
    return [now ? { ...comment, ...now } : withoutTexts(comment, "review_comment")];
  });
  return { ...thread, comments };
}
