/** Webhooks are lost in a stream of changes, and every change is heard of, once. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { SettableClock } from "../../src/simulator/clock.ts";
import { generateWorld } from "../../src/simulator/generate.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { payloadOf } from "../../src/simulator/webhooks/payload.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { makeEvents } from "../../src/sync/found/make.ts";
import { TEST_MS } from "../support/bounds.ts";
import { printFigures } from "../support/figures.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { tell } from "./tell.ts";

const MINUTE = 60_000;
/** `CHANGES=500 SEEDS=12 npm test -- test/events/found-storm` makes as many, in each of as many streams. */
const CHANGES = Number(process.env.CHANGES ?? 60);
const SEEDS = Array.from({ length: Number(process.env.SEEDS ?? 1) }, (_, at) => at + 1);
const DROP = 0.3;

// biome-ignore lint/suspicious/noExplicitAny: documents are compared and picked from, not trusted
type Document = any;

/** What somebody knows who hears of nothing but events, by resource: what each event's action says, and no more. */
type Known = Map<string, Map<string, unknown>>;

const LISTS: Record<string, string> = {
  labels: "label",
  assignees: "assignee",
  requested_reviewers: "requested_reviewer",
};
const KEYS: Record<string, readonly string[]> = {
  label: ["name", "color", "description"],
  milestone: ["title", "description", "due_on", "state"],
  issue: ["title", "body", "state", "locked"],
  pull_request: ["title", "body", "state", "locked", "draft"],
  review: ["body", "state"],
  comment: ["body"],
};

/** Everything that a document says, in the form in which events tell it. */
function whole(kind: string, document: Document): Map<string, unknown> {
  const known = new Map<string, unknown>();
  for (const key of KEYS[kind] ?? []) known.set(key, plain(key, document[key]));
  for (const [list, name] of Object.entries(LISTS))
    for (const { id } of document[list] ?? []) known.set(`${name} ${id}`, true);
  if (kind === "comment" && document.issue_url) known.set("of", Number(document.issue_url.split("/").at(-1)));
  if (kind === "issue" || kind === "pull_request") known.set("milestone", document.milestone?.id ?? null);
  if (kind === "pull_request") known.set("head", document.head.sha).set("base", document.base.ref);
  return known;
}

function plain(key: string, value: unknown): unknown {
  if (key === "state") return String(value).toUpperCase();
  return key === "body" || key === "description" ? (value ?? "") : value;
}

const SUBJECTS: Record<string, [kind: string, key: string]> = {
  issues: ["issue", "issue"],
  pull_request: ["pull_request", "pull_request"],
  issue_comment: ["comment", "comment"],
  pull_request_review: ["review", "review"],
  pull_request_review_comment: ["comment", "comment"],
  label: ["label", "label"],
  milestone: ["milestone", "milestone"],
};

/** The resources that an event has said to exist. */
const born = new Set<string>();

/** Learns from one event; answers whether it told anything that was not known. */
function learn(known: Known, event: string, payload: Document): boolean {
  const [kind, key] = SUBJECTS[event] ?? [];
  if (kind === undefined || key === undefined) return true;
  const document = payload[key];
  const name = nameOf(event, document);
  const before = known.get(name) ?? new Map<string, unknown>();
  const all = whole(kind, document);
  const set = (aspect: string, value: unknown): boolean => {
    const isNew = before.get(aspect) !== value;
    known.set(name, before.set(aspect, value));
    return isNew;
  };
  const member = (list: string, isOne: boolean): boolean => {
    const id = payload[list]?.id;
    // The event does not name the label if the label itself was deleted.
    if (id === undefined) return true;
    if (isOne) return set(`${list} ${id}`, true);
    return before.delete(`${list} ${id}`);
  };
  switch (payload.action) {
    case "opened":
    case "created":
    case "submitted":
      if (kind === "milestone" && payload.action === "opened") return set("state", all.get("state"));
      if (payload.action === "opened") all.set("state", "OPEN");
      // An issue that was made a pull request.
      if (kind === "pull_request") known.delete(`issues ${document.number}`);
      // Events that arrived before this one tell of later changes, so their values win.
      known.set(name, new Map([...all, ...before]));
      return !born.has(name) && Boolean(born.add(name));
    case "deleted":
    case "transferred":
      if (kind === "label") for (const one of known.values()) one.delete(`label ${document.id}`);
      if (kind === "issue")
        for (const [other, one] of known) if (one.get("of") === document.number) known.delete(other);
      return known.delete(name);
    case "edited":
      return Object.keys(payload.changes).some((one) => !all.has(one) || set(one, all.get(one))) || false;
    case "labeled":
    case "unlabeled":
      return member("label", payload.action === "labeled");
    case "assigned":
    case "unassigned":
      return member("assignee", payload.action === "assigned");
    case "review_requested":
    case "review_request_removed":
      return member("requested_reviewer", payload.action === "review_requested");
    case "milestoned":
    case "demilestoned":
      return set("milestone", payload.action === "milestoned" ? payload.milestone.id : null);
    case "synchronize":
      return set("head", all.get("head"));
    case "closed":
    case "reopened":
    case "dismissed":
      return set("state", all.get("state"));
    case "locked":
    case "unlocked":
      return set("locked", all.get("locked"));
    case "converted_to_draft":
    case "ready_for_review":
      return set("draft", all.get("draft"));
    default:
      return true;
  }
}

function nameOf(event: string, { id, number }: Document): string {
  return event === "issues" || event === "pull_request" ? `${event} ${number}` : `${event} ${id}`;
}

/** What upstream has, as its control interface says. */
async function truthOf(world: TestWorld, repositoryId: number): Promise<Known> {
  const { repositories } = (await (
    await fetch(`${world.simulator.url}/-/state?repository=${repositoryId}`)
  ).json()) as Document;
  const [all] = repositories;
  const known: Known = new Map();
  const add = (event: string, documents: Document[]) => {
    for (const one of documents) {
      if (one.state === "PENDING") continue;
      known.set(nameOf(event, one), whole(SUBJECTS[event]?.[0] ?? "", one));
    }
  };
  add("label", all.labels);
  add("milestone", all.milestones);
  add(
    "issues",
    all.issues.filter((one: Document) => !one.pull_request),
  );
  add("pull_request", all.pulls);
  add("issue_comment", all.comments);
  add("pull_request_review", all.reviews);
  add("pull_request_review_comment", all.review_comments);
  return known;
}

test.each(SEEDS)(
  "of a stream of changes (seed %i) three of ten webhooks are lost: each change is heard of once, and late webhooks add nothing",
  { timeout: TEST_MS + 500 * CHANGES },
  async (seed) => {
    await using world = await openWorld({
      simulator: { worldOptions: { mergeableDelayMs: 0 } },
      fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 60, pulls: 30 }),
    });
    const { ctx, simulator } = world;
    const upstream = simulator.world;
    const pass = (ms: number) => {
      (upstream.clock as SettableClock).advance(ms);
      world.advance(ms);
    };
    const repository = [...upstream.repositories.values()].find((one) => upstream.fullName(one) === world.first);
    if (!repository) throw new Error("Upstream has no repository");
    await world.mirror(world.first);
    await world.listen(world.first);
    await world.settleMarks();
    born.clear();
    const known = await truthOf(world, repository.id);
    const sent: { event: string; payload: object; json: string }[] = [];
    upstream.onEvent((event) => {
      if (event.repository !== repository) return;
      const payload = payloadOf(
        openView({ world: upstream, apiUrl: simulator.url, htmlUrl: simulator.htmlUrl }),
        event,
      );
      const json = JSON.stringify(payload);
      sent.push({ event: event.event, payload: JSON.parse(json), json });
    });
    simulator.setFaults({ seed, webhooks: { drop: DROP } });
    const live = simulator.startLive({ ratePerSecond: 0, seed });
    for (let step = 0; step < CHANGES; step++) {
      live.step();
      if (step % 5 === 4) pass(1_000);
      if (step % 30 !== 29) continue;
      await world.settle();
      pass(5 * MINUTE);
      await sweep(ctx);
      await world.settle();
      await makeEvents(ctx);
    }
    await world.settle();
    for (let round = 0; round < 2; round++) {
      pass(5 * MINUTE);
      await sweep(ctx);
      await world.settleMarks();
      await audit(ctx, { repositoryId: repository.id, repair: true, signal: new AbortController().signal });
      await world.settleMarks();
      pass(5 * MINUTE);
      await makeEvents(ctx);
    }
    const log = () =>
      ctx.db.query<{ id: number; event: string; payload: string; isMade: boolean }>(sql`
        select e.id::float8 as id, e.event, convert_from(d.payload, 'UTF8') as payload, e.is_made as "isMade"
          from events e join deliveries d on d.id = e.delivery_id where e.repository_id = ${repository.id} order by e.id`);
    const told = await log();
    const ofMade = new Set<string>();
    const again = told.flatMap(({ event, payload, isMade }) => {
      const parsed = JSON.parse(payload);
      const name = nameOf(event, parsed[SUBJECTS[event]?.[1] ?? ""] ?? {});
      if (isMade) ofMade.add(name);
      // Upstream itself says twice which labels a new issue has.
      const isNew = learn(known, event, parsed) || !ofMade.has(name);
      return isNew ? [] : [`${event} ${parsed.action} ${isMade ? "made" : "sent"} ${name}`];
    });
    const truth = await truthOf(world, repository.id);
    const missing: string[] = [];
    for (const name of new Set([...known.keys(), ...truth.keys()])) {
      const [mine, theirs] = [known.get(name), truth.get(name)];
      if (!mine || !theirs) missing.push(`${name} ${mine ? "is gone" : "is there"}`);
      else
        for (const aspect of new Set([...mine.keys(), ...theirs.keys()]))
          if (mine.get(aspect) !== theirs.get(aspect))
            missing.push(`${name} ${aspect}: ${mine.get(aspect)} ≠ ${theirs.get(aspect)}`);
    }
    const made = told.filter(({ isMade }) => isMade).length;
    expect(missing).toEqual([]);
    expect(again).toEqual([]);
    expect(made).toBeGreaterThan(0);

    // All that was lost comes after all.
    simulator.setFaults({});
    const arrived = new Set(told.map(({ payload }) => payload));
    const lost = sent.filter(({ event, json }) => SUBJECTS[event] && !arrived.has(json));
    for (const { event, payload } of lost) await tell(world, { event, payload });
    await world.settle();
    const late = (await log()).slice(told.length);
    printFigures("found", {
      changes: CHANGES,
      seed,
      told: told.length,
      made,
      lost: lost.length,
      late: late.length,
      again: again.length,
      missing: missing.length,
    });
    const changeOf = ({ event, payload }: { event: string; payload: string }) => {
      const { action, label, assignee, requested_reviewer: reviewer, ...rest } = JSON.parse(payload);
      const subject = rest[SUBJECTS[event]?.[1] ?? ""] ?? label ?? {};
      const name = `${action} ${nameOf(event, subject)} ${label?.id ?? assignee?.id ?? reviewer?.id ?? ""}`;
      return { name, at: String(subject.updated_at ?? subject.submitted_at ?? "") };
    };
    const ofUs = told.filter(({ isMade, event }) => isMade && event !== "label").map(changeOf);
    // A change that happened again after the mirror made an event of it is another change. It may never have been
    // told.
    const repeats = late.map(changeOf).filter(({ name, at }) => ofUs.some((one) => one.name === name && at <= one.at));
    expect(repeats).toEqual([]);
  },
);
