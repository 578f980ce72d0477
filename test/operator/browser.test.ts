/** The operator's page in a real browser, used as an operator uses it: `npm run proofs page`. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import axe from "axe-core";
import { type Browser, chromium, type Locator, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { sql } from "../../db/sql.ts";
import { hookSecret } from "../../src/config/hook-secrets.ts";
import { editIssue } from "../../src/simulator/changes/issues.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { noteQuota } from "../../src/upstream/quota/history.ts";
import { projectRoot } from "../docs/markdown.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { debianProgram } from "../support/debian.ts";
import { printFigures } from "../support/figures.ts";
import { eventually } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const isWanted = process.env.PAGE === "1";
const OPERATOR = "the-operators-token-of-the-browser";
/** Upstream still signs with the second secret, while the first one replaces it. */
const SECRETS = ["the-new-secret-of-the-hooks", "the-old-secret-of-the-hooks"] as const;
const NASTY = `<img src=x onerror="alert('1')">`;
const SHOTS = join(projectRoot, ".tain", "proofs", "page");
const VIEWS = [
  "home",
  "fleet",
  "quota",
  "deliveries",
  "hooks",
  "targets",
  "audits",
  "queues",
  "tokens",
  "writes",
  "doctor",
] as const;
const LOOKS = [
  { name: "light", colorScheme: "light", viewport: { width: 1280, height: 860 } },
  { name: "dark", colorScheme: "dark", viewport: { width: 1280, height: 860 } },
  { name: "phone", colorScheme: "light", viewport: { width: 390, height: 844 } },
] as const;

describe.skipIf(!isWanted)("the operator's page in a browser (skipped without PAGE=1)", () => {
  let world: TestWorld;
  let browser: Browser;
  let page: Page;
  /** Complaints of the browser: a script that failed, or a resource that the policy refused. */
  const complaints: string[] = [];
  let shots = 0;

  beforeAll(async () => {
    const found = await debianProgram("/usr/bin/chromium", "chromium");
    if ("missing" in found) throw new Error(`There is no browser: ${found.missing}`);
    const port = await freePort();
    world = await openWorld({
      env: {
        OPERATOR_TOKEN: OPERATOR,
        PORT: String(port),
        PUBLIC_URL: `http://127.0.0.1:${port}`,
        WEBHOOK_SECRET: SECRETS.join(","),
      },
      fill: ({ world: upstream }) =>
        void generateWorld(upstream, { seed: 12, repositories: 5, issues: 500, pulls: 600 }),
    });
    await world.mirror(world.first);
    browser = await chromium.launch({ executablePath: found.path, args: ["--no-sandbox"] });
    page = await openPage(LOOKS[0]);
    await mkdir(SHOTS, { recursive: true });
  }, LONG_TEST_MS);
  afterAll(async () => {
    await browser?.close();
    await world?.[Symbol.asyncDispose]();
  });

  async function openPage({ colorScheme, viewport }: Pick<(typeof LOOKS)[number], "colorScheme" | "viewport">) {
    const opened = await browser.newPage({ colorScheme, viewport, reducedMotion: "reduce" });
    opened.on("pageerror", (error) => complaints.push(error.message));
    // Chromium also logs what the API refuses.
    opened.on("console", (line) => {
      if (line.type() === "error" && !/status of (401|403|404|422)/.test(line.text())) complaints.push(line.text());
    });
    return opened;
  }

  async function shoot(of: Page, name: string): Promise<void> {
    await of.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: true });
    shots += 1;
  }

  async function signIn(to: Page): Promise<void> {
    await to.goto(`${world.url}/-/`);
    await to.getByLabel("Operator's token").fill(OPERATOR);
    await to.keyboard.press("Enter");
    await to.getByRole("heading", { level: 1, name: "Home" }).waitFor();
  }

  const open = async (name: string) => {
    await page.getByRole("navigation").getByRole("link", { name }).click();
    await page.getByRole("heading", { level: 1, name }).waitFor();
  };

  test("a wrong token is refused in words beside the field, the right one opens the page", async () => {
    await page.goto(`${world.url}/-/`);
    await shoot(page, "sign-in-light");
    await page.getByLabel("Operator's token").fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText("That is not the operator's token").waitFor();
    await expectAccessible(page);
    await shoot(page, "sign-in-refused-light");
    await signIn(page);
    await open("Repositories");
    await row(page, world.first).getByText("live", { exact: true }).waitFor();
  });

  test("a repository is added, and its copy is seen to progress until it is live", {
    timeout: LONG_TEST_MS,
  }, async () => {
    const second = secondOf(world);
    // The bar is there from when the length of every list is known, so the copy is held in its last phase.
    using pages = holdLastPhase(world);
    await page.getByLabel("Mirror another").fill(second);
    await page.getByRole("button", { name: "Mirror it" }).click();
    const copied = row(page, second).getByRole("progressbar");
    await copied.waitFor({ timeout: 60_000 });
    const first = Number(await copied.getAttribute("value"));
    pages.letThrough(1);
    await expect
      .poll(async () => Number(await copied.getAttribute("value")), { timeout: 60_000 })
      .toBeGreaterThan(first);
    await shoot(page, "copying-light");
    pages.letThrough(Number.POSITIVE_INFINITY);
    await row(page, second).getByText("live", { exact: true }).waitFor({ timeout: 60_000 });
    await page.getByText(/its copy begins, its webhook is registered|is live, its webhook is registered/).waitFor();
  });

  test("a failed delivery is found by a word of its reason, its payload read, and replayed", async () => {
    for (let n = 0; n < 12; n++) await deliver(world, { status: "applied", event: "issues", action: "edited" });
    const guid = await deliver(world, {
      status: "failed",
      event: "star",
      action: "created",
      reason: "the moon was full",
    });
    await open("Deliveries");
    await page.getByLabel("Search").fill("moon was");
    const found = row(page, guid);
    await found.getByText("the moon was full").waitFor();
    await expect.poll(() => page.getByRole("row").count()).toBe(2);
    await shoot(page, "failed-delivery-light");
    await found.getByRole("button", { name: /^Payload of/ }).click();
    await page.getByRole("dialog").getByText("<img src=x onerror=alert(1)>").waitFor();
    await expectAccessible(page);
    await shoot(page, "payload-light");
    await page.getByRole("button", { name: "Close" }).click();
    await found.getByRole("button", { name: /^Replay/ }).click();
    await page.getByLabel("Search").fill(guid);
    await row(page, guid).getByText("ignored", { exact: true }).waitFor();
    await row(page, guid).getByText("1 delivery replayed: 1 ignored").waitFor();
  });

  test("the plot of the quota moves as it is spent, and says in words where it goes", {
    timeout: LONG_TEST_MS,
  }, async () => {
    const { ctx } = world;
    const minute = 60_000;
    const past = async (ago: number, requests: number) => {
      for (let n = 0; n < requests; n++)
        await ctx.upstream.get(`/repos/${world.first}/labels?page=${n + 1}`, { priority: "audit" });
      await noteQuota({ ...ctx, clock: { now: () => new Date(Date.now() - ago) } });
    };
    for (let ago = 50 * minute; ago > 0; ago -= minute / 2) await past(ago, ago % (4 * minute) === 0 ? 12 : 1);
    await open("Quota");
    const line = page.locator(".plot .line").first();
    await line.waitFor();
    const [before = "", text = ""] = [
      await line.getAttribute("d"),
      await page.locator(".outlook").first().textContent(),
    ].map((each) => each ?? "");
    expect(before.match(/L/g)?.length).toBeGreaterThan(50);
    expect(text).toMatch(/At the pace of the last minutes, .* a minute, (about [\d,]+ are left when|it is spent at)/);
    await past(0, 60);
    await expect.poll(() => page.locator(".plot .line").first().getAttribute("d")).not.toBe(before);
    await page.getByRole("rowheader", { name: "Audits, and reads for callers" }).first().waitFor();
    await expectAccessible(page);
  });

  test("a hook that was broken at upstream is said to be, and is repaired", { timeout: LONG_TEST_MS }, async () => {
    const second = secondOf(world);
    const [hook] = hooksOf(world, second);
    Object.assign(hook ?? {}, { active: false, events: ["issues"] });
    await open("Hooks");
    await page.getByRole("button", { name: "Check all" }).click();
    await row(page, second).getByText("The hook is switched off at upstream").waitFor();
    await row(page, second).getByText("broken", { exact: true }).waitFor();
    await expectAccessible(page);
    await shoot(page, "broken-hook-light");
    await row(page, second)
      .getByRole("button", { name: /^Repair/ })
      .click();
    await row(page, second).getByText("Registered, and the ping arrived.").waitFor({ timeout: 30_000 });
    await row(page, second).getByText("well", { exact: true }).waitFor();
    expect(hook).toMatchObject({ active: true });
    await shoot(page, "repaired-hook-light");
  });

  test("a hook's secret is changed, and the hook deleted once that is confirmed", {
    timeout: LONG_TEST_MS,
  }, async () => {
    const second = secondOf(world);
    const [hook] = hooksOf(world, second);
    const [fresh, old] = SECRETS.map((secret) =>
      hookSecret(secret, { type: "repository", id: hook?.repository.id ?? 0 }),
    );
    Object.assign(hook ?? {}, { secret: old });
    const act = async (name: string) => {
      await row(page, second).getByText("Actions", { exact: true }).click();
      await row(page, second).getByRole("button", { name }).click();
    };
    await act("Change its secret");
    await row(page, second).getByText("has the new secret, and its ping arrived").waitFor({ timeout: 30_000 });
    expect(hook).toMatchObject({ secret: fresh });
    await shoot(page, "changed-secret-light");

    await act("All hooks at upstream");
    await row(page, second)
      .getByText(/ours, on, last answer 202, to /)
      .waitFor();

    await act("Delete it at upstream");
    await expectAccessible(page);
    await shoot(page, "delete-hook-light");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    expect(hooksOf(world, second)).toHaveLength(1);
    await act("Delete it at upstream");
    await page.getByRole("dialog").getByRole("button", { name: "Delete it" }).click();
    await row(page, second)
      .getByText(/hook \d+ is deleted/)
      .waitFor();
    await row(page, second).getByText("broken", { exact: true }).waitFor();
    expect(hooksOf(world, second)).toEqual([]);
    await row(page, second)
      .getByRole("button", { name: /^Repair/ })
      .click();
    await row(page, second).getByText("Registered, and the ping arrived.").waitFor({ timeout: 30_000 });
  });

  test("everything is examined by a worker, and what it finds is said with what to do", async () => {
    await open("Doctor");
    await page.getByRole("button", { name: "Examine everything" }).click();
    await page.getByText(/^All is well\.|^\d+ problems?, \d+ warnings?$/).waitFor();
    await row(page, "The schema is this version's").getByText("well", { exact: true }).waitFor();
    await row(page, "No delivery has failed").waitFor();
    await shoot(page, "examined-light");
  });

  test("the home draws the last hour and the last day, with a table behind, and says since when nothing is known", async () => {
    const { ctx } = world;
    await fillActivity(world);
    await page.getByRole("link", { name: "Home" }).click();
    const drawing = page.getByRole("img", { name: "Deliveries" });
    await page.getByText("2,400 arrived,", { exact: true }).waitFor();
    expect(await drawing.locator(".line").count()).toBe(3);
    expect(await drawing.locator(".unknown").count()).toBe(0);
    const card = page.locator(".chart").filter({ hasText: "Answers to callers" });
    await card.getByText("In figures").click();
    await card.getByRole("columnheader", { name: "kept answers" }).waitFor();
    expect(await card.getByRole("row").count()).toBe(61);
    await expectAccessible(page);
    await shoot(page, "home-hour-light");
    await page.getByLabel("Shown").selectOption("day");
    await page.getByText("57,600 arrived,", { exact: true }).waitFor();
    expect(await card.getByRole("row").count()).toBe(97);
    await shoot(page, "home-day-light");

    // Nobody has counted for twenty minutes, and no worker for half an hour.
    await page.getByLabel("Shown").selectOption("hour");
    await ctx.db.query(sql`delete from activity where began_at > now() - interval '20 minutes'`);
    await ctx.db.query(sql`update activity set applied = null where began_at > now() - interval '30 minutes'`);
    await page
      .locator(".chart")
      .filter({ hasText: "Deliveries" })
      .getByText(/^No data since \d\d:\d\d/)
      .waitFor();
    expect(await drawing.locator(".unknown").count()).toBeGreaterThan(15);
    expect(await drawing.textContent()).toContain("No data since");
    await ctx.db.query(sql`delete from activity`);
    await page
      .getByText(/^No data since \d\d:\d\d, or longer/)
      .first()
      .waitFor();
    await page.getByText("Not known").first().waitFor();
    await shoot(page, "home-unknown-light");
    await fillActivity(world);
  });

  test("a list holds still while somebody points at it or is in it, and new rows are let in", async () => {
    const one = () => deliver(world, { status: "applied", event: "issues", action: "edited" });
    await open("Deliveries");
    await page.getByLabel("Search").fill("");
    const first = page.getByRole("rowheader").first();
    const before = await one();
    await row(page, before).waitFor();
    await first.hover();
    const hidden = [await one(), await one()];
    const waiting = page.getByRole("button", { name: "2 new" });
    await waiting.waitFor();
    expect(await first.textContent()).toContain(before);
    expect(await row(page, hidden[0] ?? "").count()).toBe(0);
    await expectAccessible(page);
    await shoot(page, "list-held-light");
    // Known rows go on to tell what becomes of them.
    await world.ctx.db.query(sql`update deliveries set status = 'failed', reason = 'just now' where guid = ${before}`);
    await row(page, before).getByText("just now").waitFor();
    await waiting.click();
    await expect.poll(() => first.textContent()).toContain(hidden[1]);
    // The pointer leaves.
    await first.hover();
    const third = await one();
    await page.getByRole("button", { name: "1 new" }).waitFor();
    await page.getByLabel("Search").hover();
    await row(page, third).waitFor();
    expect(await page.getByRole("button", { name: "1 new" }).count()).toBe(0);
    // The keyboard is in the list, goes to the button, and lets the rows in.
    await page.getByLabel("Status").focus();
    for (let n = 0; n < 30 && !(await isInRows(page)); n++) await page.keyboard.press("Tab");
    const fourth = await one();
    await page.getByRole("button", { name: "1 new" }).waitFor();
    for (let n = 0; n < 30 && !(await isAt(page, "1 new")); n++) await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await row(page, fourth).waitFor();
    // What somebody asks for is shown at once, wherever the pointer is.
    await first.hover();
    await page.getByLabel("Search").focus();
    await page.keyboard.type(before);
    await expect.poll(() => page.getByRole("row").count()).toBe(2);
    await page.getByLabel("Search").fill("");
  });

  test("a delivery's way is one screen, and its list is a step back", async () => {
    await open("Deliveries");
    const guid = await deliver(world, { status: "failed", event: "star", action: "created", reason: "no star is out" });
    await row(page, guid).getByRole("link", { name: "star.created" }).click();
    await page.getByRole("heading", { level: 1, name: "star.created" }).waitFor();
    await page.getByText("no star is out").waitFor();
    await page.getByRole("list").getByText("Arrived", { exact: true }).waitFor();
    await page.getByText("There is no event to be sent.").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: /^Replay/ }).click();
    await page.getByRole("listitem").filter({ hasText: "Ignored" }).waitFor();
    await page.goto(`${world.url}/-/#delivery/${randomUUID()}`);
    await page.getByText("The inbox does not hold this delivery").waitFor();
    await page.getByRole("link", { name: "All deliveries" }).click();
    await page.getByRole("heading", { level: 1, name: "Deliveries" }).waitFor();
  });

  test("a token is made and revoked, by the keyboard alone, and revoking asks once", async () => {
    await open("Tokens");
    await page.getByLabel("Expires").focus();
    await page.keyboard.type("30d");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    const made = page.locator(".secret");
    await made.waitFor();
    expect(await made.textContent()).toMatch(/^tain_\w{40}$/);
    const valid = page.getByRole("row").filter({ hasText: "valid for 29 d" });
    await valid.getByRole("button", { name: /^Revoke/ }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await expectAccessible(page);
    // The first button of the dialog changes nothing.
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await valid.getByRole("button", { name: /^Revoke/ }).press("Enter");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("cell", { name: /^revoked/ }).waitFor();
  });

  test("the mirror is looked at with a caller's token, by the keyboard alone, and others' words stay words", {
    timeout: LONG_TEST_MS,
  }, async () => {
    const issue = [...world.simulator.world.issues.values()].find(
      (one) => !one.pull && !one.deleted && world.simulator.world.fullName(one.repository) === world.first,
    );
    if (!issue) throw new Error("There is no issue");
    editIssue(world.simulator.world, issue.repository.ownerId, issue, { title: NASTY, body: NASTY, state: "open" });
    await world.catchUp();
    for (const look of LOOKS) {
      const own = await openPage(look);
      const shown = async (name: string) => {
        await expectAccessible(own);
        const sticksOut = await own.evaluate(
          "document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        expect({ name, look: look.name, sticksOut }).toEqual({ name, look: look.name, sticksOut: 0 });
        await shoot(own, `browse-${name}-${look.name}`);
      };
      await own.goto(`${world.url}/-/browse`);
      await own.getByLabel("A token that the API takes").fill("wrong");
      await own.keyboard.press("Enter");
      await own.getByRole("alert").getByText("The API says: Bad credentials").waitFor();
      await shown("token");
      await own.getByLabel("A token that the API takes").fill(world.token);
      await own.keyboard.press("Enter");
      await own.getByRole("heading", { level: 1, name: "Repositories" }).waitFor();
      await shown("repositories");
      await own.getByRole("link", { name: world.first }).press("Enter");
      await own.getByRole("heading", { level: 1, name: world.first }).waitFor();
      await own.getByLabel(/^Search, /).fill("is:issue is:open onerror in:title");
      await own.keyboard.press("Enter");
      const found = own.getByRole("link", { name: NASTY });
      await found.waitFor();
      await own.getByRole("table").getByText("1 result").waitFor();
      await shown("search");
      await found.press("Enter");
      await own.getByRole("heading", { level: 1, name: NASTY }).waitFor();
      await own.getByText(/^Upstream confirmed this /).waitFor();
      await own.getByText(`JSON /repos/${world.first}/issues/${issue.number}`, { exact: true }).press("Enter");
      await own.getByText(`"number": ${issue.number},`).waitFor();
      await own.getByText("SQL tain sql").press("Enter");
      await own
        .getByText(`from tain_v1.comments where repository = '${world.first}' and number = ${issue.number};`)
        .waitFor();
      await shown("issue");
      await own.goto(`${world.url}/-/browse#/nobody/nothing`);
      await own.getByRole("alert").waitFor();
      await own.getByRole("button", { name: "Forget the token" }).press("Enter");
      await own.getByLabel("A token that the API takes").or(own.getByRole("alert")).first().waitFor();
      expect(await own.evaluate("sessionStorage.length")).toBe(0);
      await own.close();
    }
  });

  test("every view in light, in dark and on a phone: axe finds nothing serious, and nothing sticks out", {
    timeout: LONG_TEST_MS,
  }, async () => {
    await targetsAndWrites(world);
    const delivery = await deliver(world, { status: "applied", event: "issues", action: "opened" });
    const [way] = await world.ctx.db.query<{ id: string }>(sql`select id from deliveries where guid = ${delivery}`);
    for (const look of LOOKS) {
      const own = await openPage(look);
      await signIn(own);
      for (const view of [...VIEWS, `delivery/${way?.id}`]) {
        await own.goto(`${world.url}/-/#${view}`);
        await own.getByRole("heading", { level: 1 }).waitFor();
        await own.getByText(/^Live, /).waitFor();
        if (view === "home") await own.getByText(/^[\d,]+ arrived,$/).waitFor();
        if (view === "writes") await own.getByText(/of the record$/).waitFor();
        if (view === "hooks") {
          await own.getByRole("button", { name: "Check all" }).click();
          await own.getByText(/^(Nothing|Something) is wrong with/).waitFor();
        }
        if (view === "doctor") {
          await own.getByRole("button", { name: "Examine everything" }).click();
          await own.getByText(/^All is well\.|^\d+ problems?, \d+ warnings?$/).waitFor();
        }
        if (view === "audits")
          await own
            .getByText("equal", { exact: true })
            .or(own.getByText("No repository has been audited yet"))
            .first()
            .waitFor();
        await expectAccessible(own);
        const sticksOut = await own.evaluate(
          "document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        expect({ view, look: look.name, sticksOut }).toEqual({ view, look: look.name, sticksOut: 0 });
        await shoot(own, `${view.split("/")[0]}-${look.name}`);
      }
      await own.close();
    }
  });

  test("the browser had nothing to complain about, the content security policy included", () => {
    expect(complaints).toEqual([]);
    printFigures("page", { views: VIEWS.length * LOOKS.length, shots, complaints: complaints.length });
  });
});

/** The row of a table that holds this text. */
function row(page: Page, text: string): Locator {
  return page.getByRole("row").filter({ hasText: text });
}

function hooksOf({ simulator: { world: upstream } }: TestWorld, name: string) {
  return [...upstream.hooks.values()].filter(({ repository }) => upstream.fullName(repository) === name);
}

/** Holds the pages of the last phase of copies, which ask GraphQL for pull requests, but for as many as are let through. */
function holdLastPhase({ ctx: { upstream } }: TestWorld) {
  const held: (() => void)[] = [];
  let free = 0;
  const graphql = upstream.graphql.bind(upstream);
  const spy = vi.spyOn(upstream, "graphql").mockImplementation(async (document, ...asked) => {
    if (document.includes("pullRequests(first: $first")) {
      if (free < 1) await new Promise<void>((resolve) => void held.push(resolve));
      free -= 1;
    }
    return await graphql(document, ...asked);
  });
  const letThrough = (count: number) => {
    free += count;
    for (const go of held.splice(0, count)) go();
  };
  return {
    letThrough,
    [Symbol.dispose]: () => {
      spy.mockRestore();
      letThrough(Number.POSITIVE_INFINITY);
    },
  };
}

/** The busiest repository after the first one. */
function secondOf({ simulator: { world: upstream }, first }: TestWorld): string {
  const issues = new Map<string, number>();
  for (const { repository } of upstream.issues.values()) {
    const name = upstream.fullName(repository);
    if (name !== first) issues.set(name, (issues.get(name) ?? 0) + 1);
  }
  return [...issues].sort(([, one], [, other]) => other - one)[0]?.[0] ?? "";
}

/** Expects that axe finds nothing that keeps somebody from using the page. */
async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const found = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as axe.AxeResults;
  const grave = found.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  expect(grave.map(({ id, nodes }) => ({ id, where: nodes.map(({ html }) => html) }))).toEqual([]);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  return typeof address === "object" && address ? address.port : 0;
}

async function deliver(
  { ctx }: TestWorld,
  { status, event, action, reason = null }: { status: string; event: string; action: string; reason?: string | null },
): Promise<string> {
  const guid = randomUUID();
  const payload = Buffer.from(JSON.stringify({ action, comment: "<img src=x onerror=alert(1)>" }));
  await ctx.db.query(sql`
    insert into deliveries (hook_id, guid, event, action, payload, status, attempts, reason, received_at, settled_at)
      values (1, ${guid}, ${event}, ${action}, ${payload}, ${status}, 8, ${reason}, now(), now())`);
  return guid;
}

/** An hour and a day in which every minute was like the others. */
async function fillActivity({ ctx }: TestWorld): Promise<void> {
  await ctx.db.query(sql`delete from activity`);
  const values = sql`40, 38, 2, 4000 + 200 * (n % 9), 900 + 100 * (n % 7), 3 + n % 3, n % 4, 60 + n % 20, 30 + n % 9,
    80 + n % 25, 40 + n % 12, 5 + n % 6`;
  await ctx.db.query(sql`
    insert into activity select 1, date_trunc('minute', now()) - n * interval '1 minute', ${values}
      from generate_series(-4, 1500) n`);
}

/** Whether the keyboard is at something in a row. */
async function isInRows(page: Page): Promise<boolean> {
  return (await page.evaluate("document.activeElement?.closest('tbody') !== null")) === true;
}

/** Whether the keyboard is at what says this. */
async function isAt(page: Page, text: string): Promise<boolean> {
  return (await page.evaluate("document.activeElement?.textContent")) === text;
}

/** Makes what the other views show: a target that fails, a write, an audit. */
async function targetsAndWrites(world: TestWorld): Promise<void> {
  const wrote = await fetch(`${world.url}/repos/${world.first}/issues`, {
    method: "POST",
    headers: { authorization: `token ${world.token}`, "user-agent": "test" },
    body: JSON.stringify({ title: "Written through the mirror" }),
  });
  expect(wrote.status).toBe(201);
  await eventually(async () => {
    const rows = await world.ctx.db.query(sql`select 1 from writes`);
    expect(rows.length).toBeGreaterThan(0);
  });
}
