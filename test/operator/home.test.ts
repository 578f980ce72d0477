import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { ActivityWriter } from "../../src/operations/activity-table.ts";
import { tell } from "../events/tell.ts";
import { openLink } from "../receiver/breakable-link.ts";
import { openTestDatabase } from "../support/database.ts";
import { openMirror } from "../support/mirror.ts";
import { eventually } from "../support/patience.ts";
import { OPERATOR, type OperatorWorld, openOperatorWorld, type Told } from "./operator-world.ts";

describe("the home", () => {
  let at: OperatorWorld;
  beforeAll(async () => {
    at = await openOperatorWorld();
  });
  afterAll(() => at[Symbol.asyncDispose]());

  test("tells nothing before the first minute is over, and then what was read, applied, spent and spared", async () => {
    const signed = await at.signedIn();
    const { world } = at;
    expect((await at.view(signed, "home")).body.activity).toMatchObject({ hour: [], day: [] });

    const writer = new ActivityWriter(world.ctx);
    const { body } = await world.get(`/repos/${world.first}`);
    for (let n = 0; n < 3; n++) await world.get(`/repos/${world.first}/issues?page=${n + 1}`);
    await tell(world, { event: "star", payload: { action: "created", repository: body } });
    await world.settle();
    // Answers are noted every two seconds.
    await eventually(async () => {
      await writer.write();
      const [row] = await world.ctx.db.query<{ answers: number }>(
        sql`select coalesce(sum(by_mirror), 0)::int as answers from activity`,
      );
      expect(row?.answers).toBeGreaterThanOrEqual(4);
    });
    world.advance(70_000);
    onTestFinished(() => world.advance(-70_000));
    const { hour } = (await at.view(signed, "home")).body.activity;
    const sumOf = (figure: string) => hour.reduce((sum: number, slot: Told) => sum + (slot[figure] ?? 0), 0);
    expect(sumOf("arrived")).toBe(1);
    expect(sumOf("applied") + sumOf("ignored")).toBe(1);
    expect(sumOf("sparedRequests")).toBeGreaterThanOrEqual(4);
    expect(sumOf("spentRequests")).toBeGreaterThan(0);
    expect([sumOf("byForwarding"), sumOf("sparedPoints")]).toEqual([0, 0]);
    await writer.close();
  });
});

test("without Postgres the home says so, and does not say that nothing happens", async () => {
  await using database = await openTestDatabase();
  const link = await openLink(database.url);
  {
    await using mirror = await openMirror({ env: { DATABASE_URL: link.url, OPERATOR_TOKEN: OPERATOR } });
    const signIn = await fetch(`${mirror.url}/-/session`, {
      method: "POST",
      redirect: "manual",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: `token=${OPERATOR}`,
    });
    const cookie = (signIn.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const home = async () => {
      const answer = await fetch(`${mirror.url}/-/operator/home`, { headers: { cookie } });
      return { status: answer.status, body: (await answer.json()) as Told };
    };
    expect(await home()).toMatchObject({ status: 200, body: { activity: { hour: [], day: [] } } });
    await link.cut();
    await eventually(async () => {
      const { status, body } = await home();
      expect({ status, activity: body.activity, message: body.message, state: body.health.state }).toEqual({
        status: 503,
        activity: undefined,
        message: "This cannot be told at the moment",
        state: "problem",
      });
    });
    await link.mend();
  }
  await link[Symbol.asyncDispose]();
});
