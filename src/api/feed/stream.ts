import { cloudEventOf } from "../../events/formats/cloud-event.ts";
import type { LogEnd } from "../../events/log-end.ts";
import { type EventFilter, keptAfter, type LoggedEvent, readEvents, readPayloads } from "../../events/log-reads.ts";
import { type Fields, objectOf } from "../../json.ts";
import { type PresentText, presentTexts } from "../../mirror/read/present-texts.ts";
import type { ShownRepository } from "../../mirror/read/repositories.ts";
import type { ApiContext } from "../call/call.ts";
import { accessOf, type User } from "../callers/permissions.ts";
import type { CallerQuota } from "../callers/quota.ts";
import { ApiFault } from "../dialect/fault.ts";
import type { StreamWriter } from "../streams/lasting.ts";
import { endText, eventText, type FeedForm } from "./envelope.ts";
import type { FeedEnd, FeedMeter } from "./metering.ts";
import { EventReader, writtenIn } from "./shown-payload.ts";

/** How many events one read of the log returns. Each page is judged anew, and costs its reader a request. */
const EVENTS_A_READ = 100;
/** The most bytes of payloads that are in memory for one reader. A single payload may be larger. */
const MOST_PAYLOAD_BYTES = 1_000_000;
/** The longest payload that is parsed. A longer one takes too long, and only readers of whole payloads get it. */
const MOST_PARSED_BYTES = 1_000_000;

/** The parts that a stream of the feed uses. */
export interface FeedParts {
  ctx: ApiContext;
  quota: CallerQuota;
  end: LogEnd;
  meter: FeedMeter;
}

/** A reader of the feed, and what they asked for. */
export interface FeedReading {
  form: FeedForm;
  filter: EventFilter;
  api: string;
  caller: User;
  /** Finds out who shows this credential now. @throws ApiFault for a credential that is none any more */
  identify: () => Promise<User>;
  /** Fires when the log may have grown, or nothing more is to be waited for. */
  woken: () => Promise<void>;
  /** Why the stream has to end. Null: it goes on. */
  isEnded: () => "gone" | "lost" | null;
}

/** Tells one reader the events of the log, in order. Further events are read only once the reader has taken these. */
export class FeedStream {
  readonly #parts: FeedParts;
  readonly #reading: FeedReading;
  /** The place in the log up to which this reader was told all that they may hear. */
  place: number;

  constructor(parts: FeedParts, reading: FeedReading, since: number) {
    this.#parts = parts;
    this.#reading = reading;
    this.place = since;
  }

  /** Tells events until the stream ends. Answers why it ended. */
  async tell(line: StreamWriter): Promise<FeedEnd> {
    const { isEnded, woken } = this.#reading;
    for (;;) {
      const ended = isEnded();
      if (ended === "gone") return ended;
      if (ended === "lost")
        return await this.#end(line, ended, "The mirror's database was away for a moment. Read on.");
      if (line.isOver())
        return await this.#end(line, "lifetime", "This stream has lasted as long as one may. Read on.");
      const { place: end, isCertain } = await this.#parts.end.now();
      const outcome = end > this.place ? await this.#tellUpTo(line, end) : "told";
      if (outcome !== "told") return outcome;
      // If the log's end is uncertain, an event may already stand behind it, and no announcement would come for that
      // event.
      if (this.place >= end && isCertain) await woken();
    }
  }

  /** Tells one page of events. */
  async #tellUpTo(line: StreamWriter, end: number): Promise<FeedEnd | "told"> {
    const { ctx, quota } = this.#parts;
    const { caller, identify, filter } = this.#reading;
    const from = this.place;
    const page = await readEvents(ctx.readDb, { after: from, upTo: end, limit: EVENTS_A_READ }, filter);
    if (page.length > 0) {
      const now = await identify().catch((error: unknown) => {
        if (error instanceof ApiFault) return error;
        throw error;
      });
      if (now instanceof ApiFault) return await this.#end(line, "rights", now.message);
      // Other rights decided which events were passed over before.
      if (now.userId !== caller.userId || now.class !== caller.class)
        return await this.#end(line, "rights", "What this token may see has changed. Read on.");
      const { isSpent, figures } = await quota.spend(now, "core", 1);
      if (isSpent) {
        const until = new Date((figures?.reset ?? 0) * 1_000).toISOString();
        return await this.#end(line, "quota", `API rate limit exceeded for user ID ${now.userId}, until ${until}.`);
      }
      const outcome = await this.#tellPage(line, page, now, from);
      if (outcome !== "told") return outcome;
    }
    if (await this.#isPruned(from)) return await this.#pruned(line);
    this.place = page.length < EVENTS_A_READ ? end : (page.at(-1)?.id ?? end);
    return "told";
  }

  async #tellPage(
    line: StreamWriter,
    page: readonly LoggedEvent[],
    caller: User,
    from: number,
  ): Promise<FeedEnd | "told"> {
    const { ctx, meter } = this.#parts;
    const { form, isEnded } = this.#reading;
    const reader = new EventReader(caller);
    const repositories = await this.#seen(page, caller);
    const heard = page.filter((one) => reader.mayHear(one, asThen(one, repositories)));
    for (let at = 0; at < heard.length; ) {
      const ids = heard.slice(at).map(({ id }) => id);
      const payloads = await readPayloads(ctx.readDb, ids, MOST_PAYLOAD_BYTES);
      // Events that were pruned meanwhile must not be passed over in silence.
      if (payloads.size === 0 || (await this.#isPruned(from))) return await this.#pruned(line);
      const last = Math.max(...payloads.keys());
      const documents = new Map([...payloads].map(([id, bytes]) => [id, documentOf(bytes)]));
      const present = await this.#presentIn(reader, heard, documents);
      for (; at < heard.length; at++) {
        const event = heard[at];
        if (!event || event.id > last) break;
        const document = documents.get(event.id);
        const repository = asThen(event, repositories);
        const envelope = document ? this.#shown(reader, event, { ...document, present }, repository) : null;
        if (ctx.mirror.pace.isOver()) await ctx.mirror.pace.turn();
        if (envelope !== null) {
          const outcome = await line.write(eventText(form, event.id, envelope));
          if (outcome !== "drained") return outcome;
          meter.told(form);
        }
        this.place = event.id;
        if (isEnded() === "gone") return "gone";
      }
    }
    return "told";
  }

  /** What people wrote in these payloads, as it is now. Readers of whole payloads need none of it. */
  async #presentIn(
    reader: EventReader,
    events: readonly LoggedEvent[],
    documents: ReadonlyMap<number, EventDocument>,
  ): Promise<Map<string, PresentText>> {
    const asked = events.flatMap((event) => {
      const payload = documents.get(event.id)?.payload;
      return !payload || reader.isShownWhole(event) ? [] : writtenIn(event, payload);
    });
    return await presentTexts(this.#parts.ctx.readDb, asked);
  }

  #shown(
    reader: EventReader,
    event: LoggedEvent,
    document: EventDocument & { present: ReadonlyMap<string, PresentText> },
    repository: ShownRepository | null,
  ): string | null {
    const { id, guid, repositoryId } = event;
    return this.#parts.ctx.mirror.leftOut.unless(
      () => ({ what: "event", id, guid, event: event.event, repositoryId }),
      () => {
        const data = reader.shown(event, document, repository);
        const { payload } = document;
        return data === null ? null : cloudEventOf(event, { source: this.#sourceOf(event, repository), payload, data });
      },
    );
  }

  #sourceOf({ repositoryId }: LoggedEvent, repository: ShownRepository | null): string {
    const { api } = this.#reading;
    if (repository) return `${api}/repos/${repository.fullName}`;
    return repositoryId === 0 ? api : `${api}/repositories/${repositoryId}`;
  }

  /** The repositories of these events that the caller sees now. */
  async #seen(page: readonly LoggedEvent[], caller: User): Promise<Map<number, ShownRepository>> {
    const { repositories } = this.#parts.ctx.mirror;
    const access = accessOf(caller);
    const ids = [...new Set(page.map(({ repositoryId }) => repositoryId))];
    const found = await Promise.all(ids.map((id) => repositories.byId(id, access)));
    return new Map(found.flatMap((one) => (one ? [[one.id, one]] : [])));
  }

  async #isPruned(from: number): Promise<boolean> {
    return (await keptAfter(this.#parts.ctx.readDb)) > from;
  }

  async #pruned(line: StreamWriter): Promise<FeedEnd> {
    const kept = await keptAfter(this.#parts.ctx.readDb);
    return await this.#end(line, "pruned", `Events up to ${kept} are no longer kept: read on with since=${kept}.`);
  }

  async #end(line: StreamWriter, why: FeedEnd, message: string): Promise<FeedEnd> {
    const { form, api } = this.#reading;
    await line.write(endText(form, this.place, api, message));
    return why;
  }
}

/** A payload as upstream sent it. */
interface EventDocument {
  text: string;
  /** Null: it is too long to be parsed. */
  payload: Fields | null;
}

function documentOf(bytes: Buffer): EventDocument {
  const text = bytes.toString("utf8");
  return { text, payload: bytes.length > MOST_PARSED_BYTES ? null : objectOf(JSON.parse(text)) };
}

/**
 * The repository of an event, if the reader sees it now. It counts as private if it was so then: what happened
 * meanwhile is for those who have a right there.
 */
function asThen(
  { repositoryId, wasPrivate }: LoggedEvent,
  repositories: ReadonlyMap<number, ShownRepository>,
): ShownRepository | null {
  const now = repositories.get(repositoryId);
  return now ? { ...now, isPrivate: now.isPrivate || wasPrivate } : null;
}
