import { verify } from "@octokit/webhooks-methods";
import { expect, test } from "vitest";
import { withInstallation } from "../../src/events/request.ts";
import { type Answered, listSent } from "../../src/events/sent.ts";
import { VIEWS } from "../../src/operator/views.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openTargetServer } from "../events/target-server.ts";
import { type ToldRepository, tell } from "../events/tell.ts";
import { until } from "../support/patience.ts";
import { openWorld } from "../support/world.ts";
import { tainOn } from "./tain-on.ts";

test("an operator adds a target, sees what is wrong with it, sends again, enables and removes it", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 1, pulls: 0 }),
    env: { TARGETS_ALLOWED: "127.0.0.1" },
  });
  await using server = await openTargetServer();
  await world.mirror(world.first);
  const tain = (...args: string[]) => tainOn(world, ["targets", ...args], { TARGETS_ALLOWED: "127.0.0.1" });
  const repository = (await world.get(`/repos/${world.first}`)).body as ToldRepository;

  expect((await tain("list")).stdout).toBe("There are no targets: `tain targets add URL` makes one\n");
  const refused = await tainOn(world, ["targets", "add", server.url]);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("name its host in TARGETS_ALLOWED")]);
  const unclear = await tain("add", server.url, "--installation", "4711");
  expect([unclear.code, unclear.stderr]).toEqual([2, expect.stringContaining("--for 'owner/*'")]);
  const which = ["--for", world.first, "--events", "star", "--installation", "4711"];
  const added = await tain("add", server.url, ...which, "--json");
  expect(added.json).toEqual({ id: expect.any(Number), secret: expect.stringMatching(/^[0-9a-f]{48}$/) });
  const id = String(added.json.id);

  await tell(world, { event: "star", payload: { action: "created", repository } });
  await server.hears(1);
  const [first] = server.heard;
  expect(await verify(added.json.secret, first?.body ?? "", String(first?.headers["x-hub-signature-256"]))).toBe(true);
  expect(first?.payload).toMatchObject({ action: "created", installation: { id: 4711 } });
  await until("it is noted", async () => (await tain("list", "--json")).json.targets[0].lastStatus === "OK");
  const listed = await tain("list");
  expect(listed.stdout).not.toContain(added.json.secret);
  const [head = "", line = ""] = listed.stdout.split("\n");
  expect(head).toMatch(/^ID +FOR +SENDS TO +EVENTS +MADE BY +STATE +LAST ANSWER +WAITS$/);
  expect(line).toMatch(new RegExp(`^${id} +${world.first} +${server.url} +star +operator +on +OK +-$`));
  expect(await tain("check")).toMatchObject({ code: 0, stdout: "Nothing is wrong with 1 target\n" });

  const [sent] = (await tain("deliveries", id, "--json")).json.deliveries;
  expect(sent).toMatchObject({ event: "star", action: "created", guid: server.heard[0]?.guid, statusCode: 200 });
  expect((await tain("deliveries", id)).stdout.split("\n")[1]).toMatch(
    new RegExp(`^${sent.id} +\\S+ .*ago +star created +${sent.guid} +first +200 OK +\\d+ ms$`),
  );
  expect((await tain("deliveries", id, "--failed")).stdout).toBe(`Nothing that is kept was sent to target ${id}\n`);
  expect(await tain("deliveries", "999")).toMatchObject({ code: 1, stderr: expect.stringContaining("no target 999") });
  server.answer = (_, reply) => reply.writeHead(302, { location: "/elsewhere" }).end();
  expect(await tain("resend", id, String(sent.id))).toMatchObject({ code: 0 });
  await server.hears(2);
  expect(server.heard[1]?.guid).toBe(sent.guid);
  await until(
    "the second is listed",
    async () => (await tain("deliveries", id, "--json")).json.deliveries.length === 2,
  );
  expect((await tain("deliveries", id, "--limit", "1")).stdout).toContain(" again ");
  // The command and the operator's page do not count a redirect as accepted. The service's own API does.
  const redirected = [{ guid: sent.guid, statusCode: 302, isAccepted: false }];
  expect((await tain("deliveries", id, "--failed", "--json")).json.deliveries).toMatchObject(redirected);
  expect(await VIEWS.sent?.(world.ctx, new URLSearchParams({ target: id, failed: "1" }))).toMatchObject({
    sent: redirected,
  });
  const listedBy = (answered: Answered) => listSent(world.ctx, Number(id), { limit: 9, answered });
  expect([(await listedBy("success")).length, (await listedBy("failure")).length]).toEqual([2, 0]);

  // This command runs without the setting that allows the target. A worker without it would refuse the target, too.
  const checked = await tainOn(world, ["targets", "check"]);
  expect([checked.code, checked.stdout]).toEqual([1, expect.stringContaining("TARGETS_ALLOWED does not name it")]);
  expect(await tain("enable", id)).toMatchObject({ code: 0, stdout: `Target ${id} is sent to again\n` });
  expect((await tain("resend", id, "999")).code).toBe(1);
  expect((await tain("remove", id)).code).toBe(0);
  expect(await tain("remove", id)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`There is no target ${id}`),
  });
});

test("a chat's webhook is added without a secret, with what it wants, and what makes no sense is refused in words", async () => {
  await using world = await openWorld({ workers: false, env: { TARGETS_ALLOWED: "127.0.0.1" } });
  const url = "http://127.0.0.1:8080/services/T0/B0/x";
  const tain = (...args: string[]) => tainOn(world, ["targets", ...args], { TARGETS_ALLOWED: "127.0.0.1" });
  const added = await tain(
    "add",
    url,
    "--format",
    "slack",
    "--events",
    "issues",
    "--actions",
    "opened, closed",
    "--labels",
    "bug",
  );
  expect(added).toMatchObject({ code: 0, stdout: "" });
  const cloud = await tain("add", url, "--format", "cloudevents");
  expect(cloud.stdout).toMatch(/^[0-9a-f]{48}\n$/);
  const [, slack = "", other = ""] = (await tain("list")).stdout.split("\n");
  expect(slack.split(/ {2,}/)).toEqual(expect.arrayContaining([`${url} as slack`, "issues if opened,closed with bug"]));
  expect(other.split(/ {2,}/)).toEqual(expect.arrayContaining([`${url} as cloudevents`, "*"]));
  expect((await tain("list", "--json")).json.targets).toMatchObject([
    { format: "slack", actions: ["opened", "closed"], labels: ["bug"] },
    { format: "cloudevents", actions: null, labels: null },
  ]);
  for (const [args, sentence] of [
    [["--format", "irc"], "--format takes slack, teams, discord or cloudevents, and not irc"],
    [
      ["--format", "teams", "--form"],
      "--form is for events as upstream sent them: leave out --format teams, or --form",
    ],
    [
      ["--format", "discord", "--secret-file", "x"],
      "--secret-file is for events as upstream sent them: leave out --format discord, or --secret-file",
    ],
    [["--actions", "opened,"], '--actions takes names, comma separated, and not "opened,"'],
    [["--labels", " ,bug"], '--labels takes names, comma separated, and not " ,bug"'],
  ] as const)
    expect(await tain("add", url, ...args)).toMatchObject({ code: 2, stderr: `tain: ${sentence}\n` });
});

const OF_APP = ',"installation":{"id":4711,"node_id":"MDIzOkludGVncmF0aW9uSW5zdGFsbGF0aW9uNDcxMQ=="}';

test.each([
  ['{"action":"opened","n":1}', `{"action":"opened","n":1${OF_APP}}`],
  // The mirror's own App.
  ['{"n":12345678901234567890,"installation":{"id":7,"node_id":"x"}}', `{"n":12345678901234567890${OF_APP}}`],
  ['{"a":{"b":1,"installation":{"id":7}}}', `{"a":{"b":1,"installation":{"id":7}}${OF_APP}}`],
  ['{ "title": ",\\"installation\\":{}" }\n', `{ "title": ",\\"installation\\":{}" ${OF_APP}}`],
])("the installation that an App is told of is named in %s, and nothing else is changed", (payload, named) => {
  expect(withInstallation(Buffer.from(payload), 4711).toString()).toBe(named);
  expect(JSON.parse(named).installation).toEqual({ id: 4711, node_id: expect.any(String) });
});
