/** Webhooks are lost in a stream of changes, and every change is heard of, once. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { payloadOf } from "../../src/simulator/webhooks/payload.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { makeEvents } from "../../src/sync/found/make.ts";
import { TEST_MS } from "../support/bounds.ts";
import { printFigures } from "../support/figures.ts";
import { Follower, isFollowed, subjectName, subjectOf } from "../support/follower.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { tell } from "./tell.ts";

const MINUTE = 60_000;
/** `CHANGES=500 SEEDS=12 npm test -- test/events/found-storm` makes as many, in each of as many streams. */
const CHANGES = Number(process.env.CHANGES ?? 60);
const SEEDS = Array.from({ length: Number(process.env.SEEDS ?? 1) }, (_, at) => at + 1);
const DROP = 0.3;

// biome-ignore lint/suspicious/noExplicitAny: documents are compared and picked from, not trusted
type Document = any;

/** All that upstream has of the repository, as its control interface says. */
async function truthOf(world: TestWorld, repositoryId: number): Promise<Document> {
  const answer = await fetch(`${world.simulator.url}/-/state?repository=${repositoryId}`);
  return ((await answer.json()) as { repositories: Document[] }).repositories[0];
}

test.each(SEEDS)(
  "of a stream of changes (seed %i) three of ten webhooks are lost: each change is heard of once, and late webhooks add nothing",
  { timeout: TEST_MS + 500 * CHANGES },
  async (seed) => {
    await using world = await openWorld({
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
    const follower = new Follower();
    follower.begin(await truthOf(world, repository.id));
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
      ctx.db.query<{ event: string; payload: string; isMade: boolean; receivedAt: Date }>(sql`
        select e.event, convert_from(d.payload, 'UTF8') as payload, e.is_made as "isMade", e.received_at as "receivedAt"
          from events e join deliveries d on d.id = e.delivery_id where e.repository_id = ${repository.id} order by e.id`);
    const told = await log();
    const ofMade = new Set<string>();
    const again = told.flatMap(({ event, isMade, receivedAt, ...one }) => {
      const payload = JSON.parse(one.payload);
      const name = subjectName({ event, payload });
      if (isMade) ofMade.add(name);
      // Upstream itself says twice which labels a new issue has.
      const isNew = follower.hear({ event, payload, isMade, receivedAt: receivedAt.getTime() }) || !ofMade.has(name);
      return isNew ? [] : [`${event} ${payload.action} ${isMade ? "made" : "sent"} ${name}`];
    });
    const missing = follower.differences(await truthOf(world, repository.id));
    const made = told.filter(({ isMade }) => isMade).length;
    expect(missing).toEqual([]);
    expect(again).toEqual([]);
    expect(made).toBeGreaterThan(0);

    // All that was lost comes after all.
    simulator.setFaults({});
    const arrived = new Set(told.map(({ payload }) => payload));
    const lost = sent.filter(({ event, json }) => isFollowed(event) && !arrived.has(json));
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
      const whole = JSON.parse(payload);
      const { action, label, assignee, requested_reviewer: reviewer } = whole;
      const subject = subjectOf({ event, payload: whole });
      const name = `${action} ${subjectName({ event, payload: whole })} ${label?.id ?? assignee?.id ?? reviewer?.id ?? ""}`;
      return { name, at: String(subject.updated_at ?? subject.submitted_at ?? "") };
    };
    const ofUs = told.filter(({ isMade, event }) => isMade && event !== "label").map(changeOf);
    // A change that happened again after the mirror made an event of it is another change. It may never have been
    // told.
    const repeats = late.map(changeOf).filter(({ name, at }) => ofUs.some((one) => one.name === name && at <= one.at));
    expect(repeats).toEqual([]);
  },
);
