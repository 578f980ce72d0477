import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { wakeDue } from "../../src/events/log.ts";
import { createTarget } from "../../src/events/target.ts";
import { inherited } from "../support/config.ts";
import { openMirror } from "../support/mirror.ts";
import { until } from "../support/patience.ts";
import { openTargetServer } from "./target-server.ts";
import { tell } from "./tell.ts";

const EVENTS = 60;

test("workers that are killed in the middle lose nothing, keep the order, and send at most what they held twice", async () => {
  await using mirror = await openMirror();
  await using server = await openTargetServer();
  const allowed = { TARGETS_ALLOWED: "127.0.0.1" };
  await createTarget(mirror.ctx, {
    ...{ scope: { kind: "everything", id: 0 }, madeBy: "operator", url: server.url, contentType: "json" },
    ...{ insecureSsl: false, secret: null, events: ["*"], active: true, rewriteTo: null },
  });
  const repositories = [1, 2].map((id) => ({ id, full_name: `octo/demo-${id}`, owner: { id: 9 } }));
  let worker: ChildProcess | null = null;
  const start = () => {
    worker = spawn(process.execPath, ["workers/main.ts"], {
      env: { ...inherited, ...mirror.env, ...allowed },
      stdio: "ignore",
    });
  };
  const kill = async () => {
    const exited = worker && once(worker, "exit");
    worker?.kill("SIGKILL");
    await exited;
    // The killed worker cannot give its cursors back, so their time is made to end now.
    await mirror.ctx.db.query(sql`update target_cursors set held_until = now() where held_by is not null`);
  };
  try {
    for (let number = 0; number < EVENTS; number++)
      for (const repository of repositories) await tell(mirror, { event: "star", payload: { number, repository } });
    for (const count of [10, 40, 80]) {
      start();
      await until(`${count} are heard`, async () => {
        // The scheduler would do this.
        await wakeDue(mirror.ctx).catch(() => {});
        return server.heard.length >= count;
      });
      await kill();
    }
    start();
    const distinct = () => new Set(server.heard.map(({ guid }) => guid)).size;
    await until("all are heard", async () => {
      await wakeDue(mirror.ctx).catch(() => {});
      return distinct() === EVENTS * repositories.length;
    });
  } finally {
    await kill();
  }
  for (const { id } of repositories) {
    const numbers = server.heard
      .filter(({ payload }) => payload.repository.id === id)
      .map(({ payload }) => payload.number);
    // An event that is sent twice arrives directly after its first sending.
    expect(numbers.filter((number, at) => number !== numbers[at - 1])).toEqual(
      Array.from({ length: EVENTS }, (_, number) => number),
    );
  }
  expect(server.heard.length - EVENTS * repositories.length).toBeLessThanOrEqual(3 * repositories.length);
});
