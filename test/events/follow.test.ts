import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Run } from "../cli/tain.ts";
import { tain } from "../cli/tain-on.ts";
import { PATIENCE_MS } from "../support/bounds.ts";
import { inherited } from "../support/config.ts";
import type { TestWorld } from "../support/world.ts";
import { type FeedWorld, openFeedWorld, star } from "./feed-world.ts";
import { type ToldRepository, tell } from "./tell.ts";

let world: TestWorld;
let open: ToldRepository;
let follow: FeedWorld["follow"];

beforeAll(async () => {
  ({ world, open, follow } = await openFeedWorld());
});
afterAll(() => world?.[Symbol.asyncDispose]());

let made = 0;
const starred = (repository: ToldRepository, more: object = {}) => star(world, ++made, repository, more);

/** `tain follow` of this mirror, as a process of its own: it ends by signals. */
const following = (...args: string[]) =>
  new Run(["follow", "--url", world.url, ...args], { ...inherited, TAIN_TOKEN: world.token });

test("tain follow prints a line for each event, comes back where it was, and ends on Ctrl-C with where to go on", async () => {
  const run = following(open.full_name, "--event", "star,issues");
  await expect
    .poll(() => world.ctx.metrics.text(), { timeout: PATIENCE_MS })
    .toMatch(/^tain_feed_readers\{form="ndjson"\} [1-9]/m);
  await starred(open, { sender: { login: "mona\u001b[31mlisa" } });
  await run.said(/ star\.created by mona\ufffd\[31mlisa\n/);
  await world.restart({});
  const { body: issue } = await world.get(`/repos/${open.full_name}/issues/1`);
  await tell(world, { event: "issues", payload: { action: "pinned", issue, repository: open } });
  const title = (issue as { title: string }).title;
  await run.said(/ issues\.pinned (issues|pulls)\/1 "/);
  expect(run.stdout).toContain(`"${title}"`);
  run.signal("SIGINT");
  const { code, stdout, stderr } = await run.exited;
  expect([code, stdout.trimEnd().split("\n").length]).toEqual([0, 2]);
  expect(stderr).toMatch(/tain: --since \d+ goes on from here\n$/);
});

test("tain follow --json prints CloudEvents, and ends when nobody reads it any more", async () => {
  const script = `exec "$0" "$1" follow --json --since "$2" --url "$3" | head -n 1`;
  await using reader = await follow();
  await starred(open);
  const { id } = await reader.next();
  const env = { ...inherited, TAIN_TOKEN: world.token };
  const child = spawn("sh", ["-c", script, process.execPath, "src/cli/main.ts", String(Number(id) - 1), world.url], {
    env,
  });
  const printed: string[] = [];
  child.stdout.setEncoding("utf8").on("data", (text: string) => printed.push(text));
  const ended = once(child, "close");
  await expect.poll(() => printed.join(""), { timeout: PATIENCE_MS }).toMatch(/\n$/);
  expect(JSON.parse(printed.join(""))).toMatchObject({ id, type: "com.github.star.created" });
  await starred(open);
  await starred(open);
  expect((await ended)[0]).toBe(0);
});

test.each([
  [["--since", "yesterday"], 2, "--since yesterday is no event's id: a number, as --json prints it"],
  [["--since", "999999999"], 1, "another mirror's?"],
  [["octo"], 2, "octo is not owner/name"],
  [["octo/none"], 1, "shows no such repository"],
])("tain follow %j is refused in words", async (args, code, message) => {
  const ended = await tain(["follow", "--url", world.url, ...args], { ...inherited, TAIN_TOKEN: world.token });
  expect(ended).toMatchObject({ code, stderr: expect.stringContaining(message) });
});
