import type { LoggedEvent } from "../../events/log-reads.ts";
import { type Fields, isObject, type Json, objectOf } from "../../json.ts";
import { associationFor, type Closeness, withShown } from "../../mirror/documents.ts";
import { type Right, type ShownRepository, type Sight, sees } from "../../mirror/read/repositories.ts";
import { type Caller, closenessOf, hasMirrorsRights, mayHook, readsCode, sightOf } from "../callers/permissions.ts";

/**
 * The right that shows an event. "code": all rights to resources of commits. "talk": the right to the issue or pull
 * request that is talked about.
 */
type EventRight = Right | "code" | "talk";

const CODE = ["checks", "statuses", "contents"] as const;

/** The right that each event takes. Only hooks hear of all other events: alerts, keys, teams, members … */
const TAKES: Readonly<Record<string, EventRight>> = {
  issues: "issues",
  sub_issues: "issues",
  issue_dependencies: "issues",
  issue_comment: "talk",
  pull_request: "pulls",
  pull_request_review: "pulls",
  pull_request_review_comment: "pulls",
  pull_request_review_thread: "pulls",
  label: "issues or pulls",
  milestone: "issues or pulls",
  check_run: "checks",
  check_suite: "checks",
  status: "statuses",
  workflow_job: "code",
  workflow_run: "code",
  push: "contents",
  create: "contents",
  delete: "contents",
  commit_comment: "contents",
  release: "contents",
  fork: "metadata",
  star: "metadata",
  watch: "metadata",
  repository: "metadata",
  public: "metadata",
};

/** Keys of payloads whose values reads of the API show too. */
const DOCUMENTS: ReadonlySet<string> = new Set(
  `assignee check_run check_suite comment forkee issue label milestone organization pull_request release repository
   requested_reviewer requested_team review sender workflow_job workflow_run`.split(/\s+/),
);

/** Keys of payloads that say what happened, whoever asks. Unknown keys are left out. */
const TELLING_KEYS: ReadonlySet<string> = new Set(
  `action after base_ref before branches changes commit commits compare context created deleted description forced
   head_commit master_branch name number pusher pusher_type ref ref_type sha starred_at state target_url thread
   updated_at created_at id`.split(/\s+/),
);

/** Keys that tell where an issue moved. The reader may not see the other repository. */
const MOVED: readonly string[] = ["new_issue", "new_repository", "old_issue", "old_repository"];

/** A reader of events, with the rights that they have now. */
export class EventReader {
  readonly #caller: Caller;
  readonly #sight: Sight;

  constructor(caller: Caller) {
    this.#caller = caller;
    this.#sight = sightOf(caller);
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
    const takes = Object.hasOwn(TAKES, event) ? TAKES[event] : undefined;
    if (takes === undefined || repository === null) return false;
    switch (takes) {
      case "code":
        return CODE.every((right) => readsCode(this.#caller, this.#sight, repository, right));
      case "checks":
      case "statuses":
      case "contents":
        return readsCode(this.#caller, this.#sight, repository, takes);
      case "talk":
        return sees(this.#sight, repository, "issues or pulls");
      default:
        return sees(this.#sight, repository, takes);
    }
  }

  /**
   * The payload as JSON, as far as the reader may see it. Null: they may see none of it. `text` is the payload as
   * upstream sent it, `payload` the same parsed, or null if it is too long for that. `mayHear` was asked before.
   */
  shown(event: LoggedEvent, text: string, payload: Fields | null, repository: ShownRepository | null): string | null {
    if (this.hearsAll(event)) return text;
    if (repository === null) return null;
    if (event.event === "release" && !this.#seesRelease(payload, repository)) return null;
    if (hasMirrorsRights(this.#caller)) return text;
    if (payload === null) return null;
    if (TAKES[event.event] === "talk") {
      const isPull = isObject(objectOf(payload.issue).pull_request);
      if (!sees(this.#sight, repository, isPull ? "pulls" : "issues")) return null;
    }
    const closeness = closenessOf(this.#caller, repository.id);
    const shown: Fields = {};
    for (const [key, value] of Object.entries(payload)) {
      if (key === "changes") shown[key] = this.#shownChanges(value);
      else if (TELLING_KEYS.has(key)) shown[key] = value;
      else if (DOCUMENTS.has(key))
        shown[key] = this.#withoutHidden(isObject(value) ? withShown(value, closeness) : value, repository, closeness);
    }
    return JSON.stringify(shown);
  }

  /**
   * Whether the reader sees the release. Only those who may push see drafts. Our own tokens change no release, so they
   * see no drafts.
   */
  #seesRelease(payload: Fields | null, { id }: ShownRepository): boolean {
    return objectOf(payload?.release).draft === false || closenessOf(this.#caller, id) === "writer";
  }

  #shownChanges(changes: Json): Json {
    return Object.fromEntries(Object.entries(objectOf(changes)).filter(([key]) => !MOVED.includes(key)));
  }

  /** The value without repositories that the reader does not see, and without what only some may know of an author. */
  #withoutHidden(value: Json, repository: ShownRepository, closeness: Closeness): Json {
    if (Array.isArray(value)) return value.map((one) => this.#withoutHidden(one, repository, closeness));
    if (!isObject(value)) return value;
    const isRepository = typeof value.full_name === "string" && value.private === true;
    if (isRepository && !sees(this.#sight, { id: Number(value.id), isPrivate: true }, "metadata")) return null;
    const shown: Fields = {};
    for (const [key, inner] of Object.entries(value)) {
      if (key === "parent_issue_url" && !String(inner).includes(`/repos/${repository.fullName}/`)) continue;
      shown[key] =
        key === "author_association"
          ? associationFor(inner, closeness)
          : this.#withoutHidden(inner, repository, closeness);
    }
    return shown;
  }
}
