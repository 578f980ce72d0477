/** Deliveries of holders, and the comparisons that show whether anything changed that their signers do not own. */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { sign, verify } from "@octokit/webhooks-methods";
import { Agent, request } from "undici";
import { sql } from "../../db/sql.ts";
import { failDelivery } from "../../src/inbox/inbox.ts";
import { FeedReader } from "../events/feed-reader.ts";
import { askAt } from "../support/asking.ts";
import { foreignRows, type HoldersWorld, type Signer, type Victim } from "./holders-world.ts";
import { asOwn, type Lie, liesAbout } from "./lies.ts";
import { payloadsOfAllEvents } from "./payloads.ts";

/** One lie of one signer. */
export interface HolderCell {
  signer: Signer["name"];
  name: string;
  event: string;
  body: () => string;
  /** The delivery may pause the signer's own repository, so it comes after those that need it live. */
  pauses: boolean;
}

const PAUSING = /^(deleted|privatized|transferred|archived)$/;

/** Every lie of every signer about every event. */
export function* holderCells({ signers, victims }: HoldersWorld): Generator<HolderCell> {
  const shown = victims.map((victim) => victim.shown);
  const payloads = payloadsOfAllEvents();
  for (const { name, signing } of signers) {
    const seen = new Set<string>();
    for (const { event, payload } of payloads) {
      const isNew = (place: string) => {
        const before = seen.size;
        return seen.add(`${event} ${place}`).size > before;
      };
      const action = String(payload.action);
      const pauses = event === "repository" && PAUSING.test(action);
      for (const lie of liesAbout(asOwn(payload, signing), signing, { victims: shown, isNew }))
        yield { ...told(lie, event), signer: name, name: `${name}, ${event}.${action}, ${lie.name}`, pauses };
    }
  }
}

const told = ({ body, event }: Lie, own: string) => ({ body, event: event ?? own });

/** How the mirror took the deliveries, by their statuses; those that were refused by the answer's. */
export type Outcomes = Record<string, number>;

/** How long a delivery, an event or a row of the feed may be under way. */
const WITHIN_MS = 30_000;
const AT_ONCE = 16;

/** The victims' state: all rows, and everything that the callers are answered. */
interface State {
  rows: Map<string, string>;
  answers: Map<string, string>;
}

/** Plays batches of cells, and compares what is not the signers' before and after each. */
export class Holders {
  readonly #world: HoldersWorld;
  readonly outcomes: Outcomes = {};
  /** The deliveries of the victims' own hooks that were sent so far. */
  readonly honest = new Set<string>();
  #state: State | null = null;
  #feedAt = "0";
  readonly #heard = new Map<string, number>();

  constructor(world: HoldersWorld) {
    this.#world = world;
  }

  /** Answers what is wrong after these cells, in words. */
  async play(cells: readonly HolderCell[]): Promise<string[]> {
    const before = this.#state ?? (await this.#first());
    const faults = [...(await this.#deliver(cells)), ...(await this.#others())];
    const state = await this.#read();
    // The signers' own repositories are theirs to hide, and the next cells need them live. What is read for that is true.
    this.#state = (await this.#restoreOwn()) ? await this.#read() : state;
    return [...faults, ...changedIn(before, state)];
  }

  async #first(): Promise<State> {
    // The first deliveries tell what no copy had. The next ones change nothing.
    for (let round = 0; round < 2; round++) {
      const faults = await this.#others();
      if (faults.length > 0) throw new Error(`Before all attacks: ${faults.join("\n")}`);
      await this.#world.world.settleMarks();
    }
    return await this.#read();
  }

  async #deliver(cells: readonly HolderCell[]): Promise<string[]> {
    const { world, signers } = this.#world;
    const faults: string[] = [];
    const sent = new Map<string, HolderCell>();
    const left = [...cells];
    const one = async () => {
      for (let cell = left.shift(); cell; cell = left.shift()) {
        const signer = signers.find(({ name }) => name === cell?.signer);
        if (!signer) throw new Error(`Nobody is ${cell.signer}`);
        const guid = randomUUID();
        const status = await deliver(world.url, { ...cell, body: cell.body(), guid, signer });
        if (status === 202) sent.set(guid, cell);
        else this.#count(`refused ${status}`);
        if (status >= 500) faults.push(`${cell.name}: it is answered ${status}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
    for (const { guid, id } of await this.#unsettled([...sent.keys()])) {
      faults.push(`${sent.get(guid)?.name}: it stays pending`);
      await failDelivery(world.ctx, { deliveryId: id, reason: "the test gave up", attempts: 1 });
    }
    const rows = await world.ctx.db.query<{ guid: string; status: string; reason: string | null }>(
      sql`select guid, status, reason from deliveries where guid = any(${[...sent.keys()]})`,
    );
    for (const { guid, status, reason } of rows) {
      this.#count(status);
      if (status === "failed" && !/InvalidPayload|applied|payload|test gave up/i.test(reason ?? ""))
        faults.push(`${sent.get(guid)?.name}: it failed with ${reason}`);
    }
    await world.settle();
    return faults;
  }

  #count(outcome: string): void {
    this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1;
  }

  /** The deliveries that are neither applied, ignored nor failed within the time. */
  async #unsettled(guids: readonly string[]): Promise<{ guid: string; id: string }[]> {
    const { db } = this.#world.world.ctx;
    for (const began = performance.now(); ; await delay(20)) {
      const rows = await db.query<{ guid: string; id: string }>(
        sql`select guid, id from deliveries where status = 'pending' and guid = any(${[...guids]})`,
      );
      if (rows.length === 0 || performance.now() - began > WITHIN_MS) return rows;
    }
  }

  /** Has upstream asked about the signers' own repositories that were hidden; false: none was. */
  async #restoreOwn(): Promise<boolean> {
    const { world, own } = this.#world;
    const hidden = await world.ctx.db.count(
      sql`select from repository_syncs where state <> 'live' and repository_id = any(${own.repositoryIds}::bigint[])`,
    );
    if (hidden > 0) await world.settleMarks();
    return hidden > 0;
  }

  /** Sends others' own deliveries, and answers what is wrong with what becomes of them. */
  async #others(): Promise<string[]> {
    const { world, victims } = this.#world;
    const faults: string[] = [];
    const guids: { guid: string; victim: Victim; event: string }[] = [];
    for (const victim of victims) {
      const { owner: sender, issue } = victim.shown;
      // No webhook tells what its receiver may do.
      const { permissions: _, ...repository } = victim.shown.repository;
      const holder = { type: "repository" as const, id: victim.id };
      const events = { star: { action: "created" }, issues: { action: "edited", issue, changes: {} } };
      for (const [event, own] of Object.entries(events)) {
        const guid = randomUUID();
        const body = JSON.stringify({ ...own, repository, sender });
        const status = await deliver(world.url, { event, guid, body, signer: { holder, secret: victim.secret } });
        if (status !== 202) faults.push(`${victim.fullName}'s own ${event} is answered ${status}`);
        guids.push({ guid, victim, event });
        this.honest.add(guid);
      }
    }
    for (const { guid } of await this.#unsettled(guids.map(({ guid }) => guid)))
      faults.push(`an honest ${guids.find((one) => one.guid === guid)?.event} stays pending`);
    const rows = await world.ctx.db.query<{ guid: string; event: string; status: string; reason: string | null }>(
      sql`select guid, event, status, reason from deliveries where guid = any(${guids.map(({ guid }) => guid)})`,
    );
    for (const { event, status, reason } of rows)
      if (status !== (event === "issues" ? "applied" : "ignored"))
        faults.push(`an honest ${event} is ${status}: ${reason}`);
    await world.settle();
    return [...faults, ...(await this.#heardBy(guids)), ...(await this.#feedTells(guids.map(({ guid }) => guid)))];
  }

  async #heardBy(guids: readonly { guid: string; victim: Victim }[]): Promise<string[]> {
    const faults: string[] = [];
    const honest = new Map(guids.map(({ guid, victim }) => [guid, victim]));
    for (const target of this.#world.targets) {
      const { name, scope, secret, server } = target;
      const due = guids.filter(
        ({ victim }) =>
          scope.kind === "everything" ||
          (scope.kind === "repository" ? scope.id === victim.id : scope.id === Number(victim.shown.owner.id)),
      );
      const isHeard = () => due.every(({ guid }) => server.heard.some((heard) => heard.guid === guid));
      for (const began = performance.now(); !isHeard(); await delay(20)) {
        if (performance.now() - began < WITHIN_MS) continue;
        faults.push(`the target ${name} does not hear of an honest event`);
        break;
      }
      for (const { guid, body, headers, event, payload } of server.heard.slice(this.#heard.get(name) ?? 0)) {
        const signature = String(headers["x-hub-signature-256"]);
        if (!(await verify(secret, body, signature))) faults.push(`the target ${name} hears what it cannot verify`);
        // The operator's target hears of all repositories, and of each what its holder signs. Ids are the signer's.
        const isForeign = scope.kind !== "everything" || this.#isOfVictim(payload);
        if (!honest.has(guid) && isForeign)
          faults.push(`the target ${name} hears a ${event} of a holder, of ${payload.repository?.full_name}`);
      }
      this.#heard.set(name, server.heard.length);
    }
    return faults;
  }

  #isOfVictim({ repository }: { repository?: { id?: unknown } }): boolean {
    return this.#world.victims.some(({ id }) => repository?.id === id);
  }

  async #feedTells(guids: readonly string[]): Promise<string[]> {
    const { world, callers } = this.#world;
    const token = callers["Tain's token that reads all"] ?? "";
    await using reader = await FeedReader.open({ url: world.url, token, query: `?since=${this.#feedAt}` });
    const waiting = new Set(guids);
    const end = setTimeout(() => void reader[Symbol.asyncDispose](), WITHIN_MS);
    try {
      while (waiting.size > 0) {
        const told = await reader.next();
        if (told === null || told.type === "tain.end")
          return [`the feed ends at ${this.#feedAt}: ${JSON.stringify(told)}`];
        waiting.delete(told.githubdelivery);
        this.#feedAt = told.id;
      }
      return [];
    } finally {
      clearTimeout(end);
    }
  }

  async #read(): Promise<State> {
    return { rows: await foreignRows(this.#world, this.honest), answers: await this.#answers() };
  }

  /** What every caller is shown of every victim. */
  async #answers(): Promise<Map<string, string>> {
    const { world, callers, victims } = this.#world;
    const answers = new Map<string, string>();
    const ask = async (caller: string, method: string, path: string, body?: string) => {
      const asking = { token: callers[caller] ?? null, ...(body === undefined ? {} : { body }) };
      const { status, text } = await askAt(world.url, method, path, asking);
      answers.set(`${caller}, ${method} ${path} ${body ?? ""}`, `${status} ${text}`);
    };
    for (const caller of Object.keys(callers)) {
      for (const { fullName, id, shown } of victims) {
        const { login } = shown.owner;
        const [owner = "", name = ""] = fullName.split("/");
        const paths = [
          `/repos/${fullName}`,
          `/repositories/${id}`,
          `/users/${login}`,
          `/search/issues?q=repo:${fullName}`,
        ];
        const below = ["", "/1", "/comments", "/1/labels"].map((part) => `/repos/${fullName}/issues${part}?state=all`);
        const pulls = ["", "/2", "/2/reviews", "/comments"].map((part) => `/repos/${fullName}/pulls${part}?state=all`);
        for (const path of [...paths, ...below, ...pulls, `/repos/${fullName}/labels`, `/repos/${fullName}/milestones`])
          await ask(caller, "GET", path);
        const inner = `isPrivate nameWithOwner owner { login } issues(first: 10) { nodes { title author { login } } }`;
        const query = `{ repository(owner: "${owner}", name: "${name}") { ${inner} } }`;
        if (callers[caller] !== null) await ask(caller, "POST", "/graphql", JSON.stringify({ query }));
      }
    }
    // Lists over all repositories show the signers' own too. Only whether they are answered is compared.
    for (const path of ["/search/issues?q=is:issue", "/search/repositories?q=stars:>=0", "/issues?filter=all"]) {
      const caller = "Tain's token that reads all";
      const { status } = await askAt(world.url, "GET", path, { token: callers[caller] ?? null });
      answers.set(`${caller}, GET ${path}`, String(status));
    }
    return answers;
  }
}

interface Sent {
  event: string;
  guid: string;
  body: string;
  signer: Pick<Signer, "holder" | "secret">;
}

/** A connection for each delivery: the mirror may end one that has waited, just as it is used again. */
const ALONE = new Agent({ pipelining: 0 });

async function deliver(url: string, { event, guid, body, signer: { holder, secret } }: Sent): Promise<number> {
  const answer = await request(`${url}/webhooks`, {
    dispatcher: ALONE,
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-github-event": event,
      "x-github-delivery": guid,
      "x-github-hook-id": "1",
      "x-github-hook-installation-target-type": holder.type,
      "x-github-hook-installation-target-id": String(holder.id),
      "x-hub-signature-256": await sign(secret, body),
    },
    body,
  });
  await answer.body.dump();
  return answer.statusCode;
}

const SHOWN = 400;

/** What differs between two states of what the signers do not own. */
function changedIn(before: State, after: State): string[] {
  const faults: string[] = [];
  for (const [row, table] of before.rows)
    if (!after.rows.has(row) && table !== "") faults.push(`a row is gone or changed: ${row.slice(0, SHOWN)}`);
  for (const [row, table] of after.rows) {
    // A row without a name that somebody has tells of nobody else.
    if (!before.rows.has(row) && table !== "") faults.push(`a row is new: ${row.slice(0, SHOWN)}`);
  }
  for (const [question, answer] of after.answers) {
    const earlier = before.answers.get(question);
    if (earlier === answer) continue;
    const same = [...answer].findIndex((character, at) => character !== earlier?.[at]);
    const from = Math.max(0, (same === -1 ? answer.length : same) - SHOWN / 8);
    const part = (text?: string) => text?.slice(from, from + SHOWN / 2);
    faults.push(`${question}: … ${part(answer)}, and before … ${part(earlier)}`);
  }
  return faults;
}
