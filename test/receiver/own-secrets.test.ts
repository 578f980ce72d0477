/** Each hook has a secret of its own. What is signed with it is believed only about the hook's own holder. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { type HookHolder, hookSecret } from "../../src/config/hook-secrets.ts";
import { eventually } from "../support/patience.ts";
import { startProgram } from "../support/program.ts";
import { deliverTo, OLDER_SECRET, opened, openReceiverWorld, type ReceiverWorld, SECRET } from "./receiver-world.ts";

let world: ReceiverWorld;
beforeAll(async () => {
  world = await openReceiverWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const A: HookHolder = { type: "repository", id: 7 };
const B: HookHolder = { type: "repository", id: 8 };
const ORGANIZATION: HookHolder = { type: "organization", id: 70 };
const APP: HookHolder = { type: "integration", id: 700 };
const named = ({ type, id }: HookHolder) => ({
  "x-github-hook-installation-target-type": type,
  "x-github-hook-installation-target-id": String(id),
});
const sending = (holder: HookHolder, payload: object, master = SECRET, says = holder) => ({
  payload,
  secret: hookSecret(master, holder),
  headers: named(says),
});
const of = (id: number, more: object = {}) => ({ ...opened, ...more, repository: { id, full_name: "octo/demo" } });
const owned = (id: number, owner: number, organization = owner) => ({
  ...opened,
  repository: { id, full_name: "octo/demo", owner: { id: owner } },
  organization: { id: organization },
});

describe("what a holder's own secret signs is taken", () => {
  test.each([
    ["of its repository", sending(A, of(7))],
    ["of its repository, when it is large", sending(A, of(7, { filling: "x".repeat(5_000) }))],
    ["of its repository, by the secret before the present one", sending(A, of(7), OLDER_SECRET)],
    ["a ping that names nothing", { event: "ping", ...sending(A, { zen: "x", hook_id: 1 }) }],
    ["of a repository of the organisation", sending(ORGANIZATION, owned(9, 70))],
    ["of the organisation itself", { event: "member_added", ...sending(ORGANIZATION, { organization: { id: 70 } }) }],
    ["of any repository of an installation", sending(APP, of(11, { installation: { id: 3 } }))],
    ["an installation", { event: "installation", ...sending(APP, { action: "created", installation: { id: 3 } }) }],
  ])("%s", async (_, sent) => {
    expect(await world.deliver(sent)).toMatchObject({ status: 202 });
  });
});

describe("what it signs of anything else is refused in words", () => {
  test.each([
    ["another repository", sending(A, of(8))],
    ["no repository", { event: "deployment", ...sending(A, { repository: null, organization: [] }) }],
    ["an organisation's ping", { event: "ping", ...sending(A, { organization: { id: 71 } }) }],
    ["what only an organisation's hook tells", { event: "organization", ...sending(A, of(7)) }],
    [
      "an installation beside its repository",
      { event: "installation", ...sending(A, of(7, { installation: { id: 3 } })) },
    ],
    ["an organisation that is not named", { event: "member_added", ...sending(ORGANIZATION, { organization: null }) }],
    [
      "a repository that is not named, beside its organisation",
      { event: "star", ...sending(ORGANIZATION, { repository: null, organization: { id: 70 } }) },
    ],
    ["another repository, in a large payload", sending(A, of(8, { filling: "x".repeat(5_000) }))],
    ["an installation", { event: "installation", ...sending(A, { action: "deleted", installation: { id: 3 } }) }],
    ["a repository of another organisation", sending(ORGANIZATION, owned(9, 71))],
    ["a repository that its owner is not named of", sending(ORGANIZATION, of(9))],
    ["an organisation beside its own", sending(ORGANIZATION, owned(9, 70, 71))],
    [
      "an organisation, by a repository's secret",
      { event: "member_added", ...sending(A, { organization: { id: 70 } }) },
    ],
    ["another organisation itself", { event: "member_added", ...sending(ORGANIZATION, { organization: { id: 71 } }) }],
    ["a repository outside of all installations", sending(APP, of(11))],
  ])("%s", async (_, sent) => {
    const answer = await world.deliver(sent);
    expect(answer).toMatchObject({ status: 400, body: { message: expect.stringContaining("whose secret signed it") } });
  });
});

test.each([undefined, null, "7", 7.5, {}])("nor is a repository whose id is %j taken for none", async (id) => {
  const payload = { repository: { id, full_name: "octo/demo", owner: { id: 71 } } };
  expect(await world.deliver({ event: "star", ...sending(A, payload) })).toMatchObject({ status: 400 });
});

describe("a secret is tried for the holder that the headers name, and for no other", () => {
  test.each([
    ["its own, as another's", sending(A, of(8), SECRET, B)],
    ["its own, as an organisation's", sending(A, of(7), SECRET, { type: "organization", id: 7 })],
    ["its own, as nobody's", { payload: of(7), secret: hookSecret(SECRET, A) }],
    ["made of a secret that is none", sending(A, of(7), "not the secret")],
  ])("%s", async (_, sent) => {
    expect(await world.deliver(sent)).toMatchObject({
      status: 401,
      body: { message: expect.stringContaining("does not match the body") },
    });
  });
});

test("hooks that were given WEBHOOK_SECRET itself go on, whatever they tell of", async () => {
  for (const secret of [SECRET, OLDER_SECRET])
    for (const headers of [named(A), named(B), {}])
      expect(await world.deliver({ payload: of(7), secret, headers })).toMatchObject({ status: 202 });
});

test("of each such hook a line says once what to do", async () => {
  const web = startProgram("src/web.ts", { ...world.env, LOG_LEVEL: "info" });
  const { address } = (await web.said("Listening")) as unknown as { address: string };
  for (const hookId of [1, 2, 1, 2]) await deliverTo(address, { payload: of(7), hookId, headers: named(A) });
  await deliverTo(address, { ...sending(A, of(7)), hookId: 3 });
  await deliverTo(address, { payload: of(7), hookId: 4 });
  await web.said("A hook signs with WEBHOOK_SECRET itself");
  await web.stop();
  const told = web.lines.filter(({ msg }) => msg.includes("signs with WEBHOOK_SECRET itself"));
  expect(told.map(({ hookId, repository }) => [hookId, repository])).toEqual([
    [1, 7],
    [2, 7],
    [4, undefined],
  ]);
});

test("of two repositories under one key the last counts, also in a long payload", async () => {
  const filling = "x".repeat(5_000);
  const both = (first: number, last: number) =>
    `{"action":"edited","filling":"${filling}","repository":{"id":${first}}, "reposit\\u006fry" : {"id":${last}}}`;
  const sent = { event: "label", secret: hookSecret(SECRET, A), headers: named(A) };
  expect(await world.deliver({ ...sent, body: both(7, 8) })).toMatchObject({ status: 400 });
  expect(await world.deliver({ ...sent, body: both(8, 7) })).toMatchObject({ status: 202 });
});

test("a delivery that waits in Redis keeps the repository that its signature was checked for", async () => {
  await using apart = await openReceiverWorld();
  const { db } = apart.ctx;
  await db.query(sql`alter table deliveries add constraint refused check (event <> 'label')`);
  const body = JSON.stringify({ action: "edited", repository: { id: 7, name: "a" } });
  const sent = { event: "label", guid: "waits-in-redis", body, secret: hookSecret(SECRET, A), headers: named(A) };
  expect(await apart.deliver(sent)).toMatchObject({ status: 202 });
  const [job] = await eventually(async () => {
    const jobs = await apart.ctx.queues.inbox.getJobs(["waiting"]);
    expect(jobs).toHaveLength(1);
    return jobs;
  });
  expect(job?.data).toMatchObject({ repositoryId: 7, signer: A });
});
