import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ENTERPRISE, ghThrough } from "../conformance/gh-runs.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { printFigures } from "../support/figures.ts";
import { type ClientsWorld, isPublic, openClientsWorld, PERSON } from "./clients-world.ts";
import { fromDebian, fromNpm } from "./installed.ts";
import { openMcp } from "./mcp.ts";
import { openProbot } from "./probot.ts";
import { binOf, printed } from "./run.ts";

const isAsked = process.env.TOOLS !== undefined;
const PROGRAMS = fileURLToPath(new URL("programs/", import.meta.url));
const GO = { GO111MODULE: "off", GOPATH: "/usr/share/gocode", GOFLAGS: "" };

// biome-ignore lint/suspicious/noExplicitAny: what programs print is compared, not trusted
type Json = any;

let at: ClientsWorld;

const ran = (program: string, args: readonly string[], env?: NodeJS.ProcessEnv, cwd?: string) =>
  printed(at, program, args, env, cwd);

/** Prints what a tool has asked, and where it was answered. */
function tell(tool: string): void {
  const { asked, routes } = at.front.take();
  printFigures(isPublic ? "tools in public" : "tools", { tool, ...asked });
  if (process.env.TOOLS === "routes") console.info(routes.join("\n"));
}

const upstream = async (path: string): Promise<Json> =>
  (
    await fetch(at.world.simulator.url + path, {
      headers: { authorization: `token ${PERSON.token}`, "user-agent": "t" },
    })
  ).json();

describe.skipIf(!isAsked)("tools (TOOLS=1)", { timeout: LONG_TEST_MS }, () => {
  beforeAll(async () => {
    at = await openClientsWorld();
  }, LONG_TEST_MS);
  afterAll(() => at?.[Symbol.asyncDispose]());

  describe.each([
    {
      library: "PyGithub",
      packages: ["python3-github"],
      check: ["/usr/bin/python3", "-c", "import github"],
      start: ["/usr/bin/python3", "pygithub.py"],
    },
    {
      library: "octokit.rb",
      packages: ["ruby-octokit"],
      check: ["/usr/bin/ruby", "-roctokit", "-e", ""],
      start: ["/usr/bin/ruby", "octokit.rb"],
    },
    {
      library: "go-github",
      packages: ["golang-go", "golang-github-google-go-github-dev"],
      check: ["/usr/bin/go", "version"],
      start: ["/usr/bin/go", "run", "go-github.go"],
    },
  ] as const)("$library", ({ library, packages, check, start }) => {
    test.skipIf(isAsked && !fromDebian(check, ...packages))(
      "reads and writes (skipped where it cannot be installed)",
      async () => {
        const { front, repo, pull } = at;
        const [program, ...args] = start;
        const script = join(PROGRAMS, args.pop() ?? "");
        front.take();
        const given = [...args, script, front.url, PERSON.token, repo, String(pull.number)];
        const seen = JSON.parse(await ran(program, given, GO));
        tell(library);
        expect(seen).toEqual(await truthOf(library, seen.made));
      },
    );
  });

  /** What each of the libraries' programs should have seen. */
  async function truthOf(library: string, made: number): Promise<Json> {
    const { repo, pull } = at;
    const of = `/repos/${repo}`;
    const [commits, files, reviews, runs, status, releases, branches, readme, issue] = await Promise.all([
      upstream(`${of}/pulls/${pull.number}/commits?per_page=100`),
      upstream(`${of}/pulls/${pull.number}/files?per_page=100`),
      upstream(`${of}/pulls/${pull.number}/reviews?per_page=100`),
      upstream(`${of}/commits/${pull.pull.head.sha}/check-runs?per_page=100`),
      upstream(`${of}/commits/${pull.pull.head.sha}/status?per_page=100`),
      upstream(`${of}/releases?per_page=100`),
      upstream(`${of}/branches?per_page=100`),
      upstream(`${of}/contents/README.md`),
      upstream(`${of}/issues/${made}`),
    ]);
    const issues = [...at.world.simulator.world.issues.values()].filter((one) => one.state === "open");
    expect(issue).toMatchObject({ title: `By ${library}`, state: "closed", user: { login: PERSON.login } });
    return {
      user: PERSON.login,
      issues: library === "PyGithub" ? issues.length : issues.filter((one) => !one.pull).length,
      found: issues.filter((one) => one.pull).length,
      commits: commits.map((one: Json) => one.sha),
      files: files.map((one: Json) => one.filename),
      reviews: reviews.length,
      runs: runs.check_runs.map((one: Json) => one.name).sort(),
      status: status.statuses.map((one: Json) => one.context),
      releases: releases.map((one: Json) => one.tag_name),
      branches: branches.map((one: Json) => one.name).sort(),
      readme: Buffer.from(readme.content, "base64").toString(),
      closed: "closed",
      comments: [`said by ${library}`],
      made,
    };
  }

  test("Danger reads a pull request, comments on it and says so by a status", async () => {
    const folder = await fromNpm("danger", "14.0.7");
    const { front, repo, pull, home } = at;
    writeFileSync(
      join(home, "dangerfile.js"),
      `schedule(async () => {
        const { github, git } = danger;
        const first = git.modified_files[0] ?? git.created_files[0];
        const diff = await git.diffForFile(first);
        message(JSON.stringify({ number: github.pr.number, commits: github.commits.length, reviews: github.reviews.length,
          files: git.modified_files.length + git.created_files.length + git.deleted_files.length, isDiff: diff !== null }));
        warn("said by Danger");
      });`,
    );
    front.take();
    const said = await node(folder, "danger", ["ci", "--dangerfile", "dangerfile.js"], {
      ...{ DANGER_FAKE_CI: "yes", DANGER_TEST_REPO: repo, DANGER_TEST_PR: String(pull.number) },
      ...{ DANGER_GITHUB_API_TOKEN: PERSON.token, DANGER_GITHUB_API_BASE_URL: front.url },
    });
    tell("Danger");
    const [comments, status] = await Promise.all([
      upstream(`/repos/${repo}/issues/${pull.number}/comments?per_page=100`),
      upstream(`/repos/${repo}/commits/${pull.pull.head.sha}/status`),
    ]);
    const [comment] = comments.filter((one: Json) => one.user.login === PERSON.login);
    expect(comment?.body, said).toContain("said by Danger");
    const { commits, changedFiles: files } = pull.pull;
    const shown = JSON.parse(/\{"number".*?\}/.exec(comment.body)?.[0] ?? "{}");
    expect(shown).toMatchObject({ number: pull.number, commits, files, isDiff: true });
    expect(status.statuses.map((one: Json) => one.context)).toContain("Danger");
  });

  test("release-please works out the next release of what was committed (dry run)", async () => {
    const folder = await fromNpm("release-please", "17.11.2");
    const { front, repo, branch } = at;
    front.take();
    const said = await node(folder, "release-please", [
      ...["release-pr", "--dry-run", "--release-type=simple", `--repo-url=${repo}`, `--target-branch=${branch}`],
      ...[`--token=${PERSON.token}`, `--api-url=${front.url}`, `--graphql-url=${front.url}`],
    ]);
    tell("release-please");
    expect(said).toContain(`title: chore(${branch}): release 9.1.0`);
    expect(said).toContain("learn a new trick");
  });

  test("semantic-release releases what was committed, and tells the issue that it fixes", async () => {
    const folder = await fromNpm("semantic-release", "25.0.9");
    const { front, repo, branch, bare, home, fixed } = at;
    const work = join(home, "to-release");
    await ran("git", ["clone", "--quiet", bare, work]);
    const address = `${front.url}/${repo}.git`;
    front.take();
    const plugins = ["commit-analyzer", "release-notes-generator", "github"].map((one) => `@semantic-release/${one}`);
    const said = await node(
      folder,
      "semantic-release",
      ["--no-ci", "--branches", branch, "--repository-url", address, "--plugins", ...plugins],
      { GITHUB_API_URL: front.url, GH_TOKEN: PERSON.token },
      work,
    );
    tell("semantic-release");
    const release = await upstream(`/repos/${repo}/releases/tags/v9.1.0`);
    expect(release.body, said).toContain("learn a new trick");
    const comments = await upstream(`/repos/${repo}/issues/${fixed}/comments?per_page=100`);
    expect(comments.at(-1).body).toContain("This issue has been resolved in version 9.1.0");
    const { labels } = await upstream(`/repos/${repo}/issues/${fixed}`);
    expect(labels.map((one: Json) => one.name)).toContain("released");
    // Read your writes: the mirror has all of this.
    const ours = await fetch(`${at.world.url}/repos/${repo}/issues/${fixed}`, {
      headers: { "user-agent": "t", authorization: `token ${at.world.token}` },
    });
    expect(((await ours.json()) as Json).labels.map((one: Json) => one.name)).toContain("released");
  });

  test.skipIf(isAsked && !fromDebian(["/usr/bin/gh", "--version"], "gh"))("gh works in its verbs", async () => {
    const { front, repo, pull, home, bare, world } = at;
    const socket = join(home, "gh.socket");
    await front.listen(socket);
    const gh = await ghThrough(socket, { home, token: PERSON.token });
    const work = join(home, "of-gh");
    const head = pull.pull.head.ref;
    await ran("git", ["clone", "--quiet", bare, work]);
    await ran("git", ["push", "--quiet", "origin", `HEAD:refs/heads/${head}`], {}, work);
    // `gh` reads where a remote leads, so it has to be the service's name: git asks a program for it that serves the
    // clone.
    await ran("git", ["remote", "set-url", "origin", `git@${ENTERPRISE}:${repo}.git`], {}, work);
    await ran("git", ["config", "core.sshCommand", `sh -c 'exec git-upload-pack "$0"' ${bare}`], {}, work);
    await ran("git", ["config", "ssh.variant", "simple"], {}, work);
    const there = ["-R", `${ENTERPRISE}/${repo}`];
    const said = async (args: string[], fits: (status: number) => boolean = (status) => status === 0) => {
      const { status, out, err } = await gh(args, { host: ENTERPRISE, cwd: work });
      expect(fits(status), `gh ${args.join(" ")}\n${out}${err}`).toBe(true);
      return out;
    };
    const [number, sha] = [String(pull.number), pull.pull.head.sha];
    front.take();
    expect(await said(["repo", "view", `${ENTERPRISE}/${repo}`])).toContain(repo);
    expect(await said(["issue", "list", ...there])).not.toBe("");
    expect(await said(["pr", "list", ...there])).toContain(number);
    const json =
      "number,headRefOid,files,commits,reviews,statusCheckRollup,mergeStateStatus,reviewDecision,labels,comments";
    const seen = JSON.parse(await said(["pr", "view", number, ...there, "--json", json]));
    expect(seen).toMatchObject({ number: pull.number, headRefOid: sha });
    expect([seen.commits.length, seen.files.length]).toEqual([pull.pull.commits, pull.pull.changedFiles]);
    const { check_runs: runs } = await upstream(`/repos/${repo}/commits/${sha}/check-runs?per_page=100`);
    // It ends with 1 where a check failed, and with 8 where one is pending.
    const checks = await said(["pr", "checks", number, ...there], (status) => [0, 1, 8].includes(status));
    for (const { name } of runs) expect(checks).toContain(name);
    expect(await said(["pr", "diff", number, ...there])).toContain("diff --git");
    await said(["pr", "review", number, ...there, "--comment", "--body", "looked at by gh"]);
    await said(["pr", "comment", number, ...there, "--body", "said by gh"]);
    await said(["pr", "checkout", number]);
    expect((await ran("git", ["branch", "--show-current"], {}, work)).trim()).toBe(head);
    expect(await said(["pr", "status"])).toContain(`#${number}`);
    const releases = await said(["release", "list", ...there]);
    expect(releases).toContain("v9.0.0");
    expect(await said(["release", "view", "v9.0.0", ...there])).toContain("v9.0.0");
    expect(await said(["search", "prs", "--repo", repo, "--state", "open"])).toContain(number);
    expect(await said(["label", "list", ...there])).not.toBe("");
    const [newest] = JSON.parse(await said(["run", "list", ...there, "--json", "databaseId,headSha,status"]));
    const viewed = await said(["run", "view", String(newest.databaseId), ...there]);
    const { jobs } = await upstream(`/repos/${repo}/actions/runs/${newest.databaseId}/jobs`);
    for (const { name } of jobs) expect(viewed).toContain(name);
    await said(["status"]);
    tell("gh");
    const comments = await upstream(`/repos/${repo}/issues/${number}/comments?per_page=100`);
    expect(comments.map((one: Json) => one.body)).toContain("said by gh");
    expect(JSON.stringify((await world.get(`/repos/${repo}/issues/${number}/comments?per_page=100`)).body)).toContain(
      "said by gh",
    );
    // All the fields that each command knows.
    for (const command of [
      ["repo", "view", `${ENTERPRISE}/${repo}`],
      ["pr", "view", number, ...there],
      ["pr", "list", ...there],
      ["issue", "view", String(at.fixed), ...there],
      ["issue", "list", ...there],
      ["release", "view", "v9.0.0", ...there],
      ["label", "list", ...there],
      ["search", "prs", "--repo", repo],
    ]) {
      const { out, err } = await gh([...command, "--json"], { host: ENTERPRISE, cwd: work });
      const fields = `${out}${err}`.split("\n").flatMap((line) => /^\s+(\w+)$/.exec(line)?.[1] ?? []);
      const shown: Json = JSON.parse(await said([...command, "--json", fields.join()]));
      expect(Object.keys([shown].flat()[0]).toSorted(), command.join(" ")).toEqual(fields.toSorted());
    }
    await at.push("by-gh");
    const words = ["--title", "Made by gh", "--body", "with its words"];
    const place = await said(["pr", "create", ...there, "--head", "by-gh", "--base", at.branch, ...words, "--draft"]);
    const mine = /\/pull\/(\d+)/.exec(place)?.[1] ?? "";
    const isNow = async (shown: object) => {
      expect(await upstream(`/repos/${repo}/pulls/${mine}`)).toMatchObject(shown);
      expect((await world.get(`/repos/${repo}/pulls/${mine}`)).body).toMatchObject(shown);
    };
    await isNow({ title: "Made by gh", body: "with its words", draft: true, head: { ref: "by-gh" } });
    await said(["pr", "ready", mine, ...there]);
    await isNow({ draft: false });
    await said(["pr", "close", mine, ...there]);
    await isNow({ state: "closed", merged: false });
    await said(["pr", "reopen", mine, ...there]);
    await isNow({ state: "open" });
    await said(["pr", "edit", number, ...there, "--title", "Edited by gh"]);
    await said(["pr", "merge", number, ...there, "--merge"]);
    const merged = { title: "Edited by gh", merged: true, state: "closed" };
    expect(await upstream(`/repos/${repo}/pulls/${number}`)).toMatchObject(merged);
    expect((await world.get(`/repos/${repo}/pulls/${number}`)).body).toMatchObject(merged);
  });

  test("an MCP server that takes a host works through it", async () => {
    const folder = await fromNpm("github-enterprise-mcp-server", "1.1.2");
    const { front, owner, name, repo, pull } = at;
    const tls = await front.secure(at.home);
    front.take();
    const args = ["--endpoint", `${tls.url}/api/v3`, "--token", PERSON.token];
    await using server = openMcp(process.execPath, [binOf(folder, "github-enterprise-mcp-server"), ...args], {
      ...at.env,
      NODE_EXTRA_CA_CERTS: tls.certificate,
    });
    await server.ask("initialize", {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "test", version: "1" },
    });
    server.tell("notifications/initialized");
    const call = async (tool: string, given: object = {}): Promise<Json> => {
      const { structuredContent, content, isError } = (await server.ask("tools/call", {
        name: tool,
        arguments: { owner, repo: name, ...given },
      })) as Json;
      expect(isError, JSON.stringify(content)).not.toBe(true);
      return structuredContent ?? JSON.parse(content[0].text);
    };
    expect((await call("github-repo-get")).full_name).toBe(repo);
    const listed = JSON.stringify(await call("github-issue-list", { state: "all", per_page: 100 }));
    expect(listed).toContain("html_url");
    const made = await call("github-issue-create", { title: "By an agent" });
    await call("github-issue-comment", { issue_number: made.number, body: "said by an agent" });
    expect((await call("github-issue-get", { issue_number: made.number })).comments).toBe(1);
    await call("github-issue-close", { issue_number: made.number });
    expect((await call("github-pr-get", { pull_number: pull.number })).head.sha).toBe(pull.pull.head.sha);
    await call("github-pr-list");
    await call("github-pr-review", { pull_number: pull.number, event: "COMMENT", body: "well done" });
    await call("github-branch-list");
    await call("github-tag-list");
    await call("github-commit-get", { ref: pull.pull.head.sha });
    await call("github-contents-get", { path: "README.md" });
    tell("MCP server");
    expect(await upstream(`/repos/${repo}/issues/${made.number}`)).toMatchObject({ state: "closed", comments: 1 });
  });

  test("Probot as an App: signs in, hears of an issue, and answers as its installation", async () => {
    const folder = await fromNpm("probot", "14.3.2");
    const { front, owner, repo, world } = at;
    const { privateKey } = generateKeyPairSync("rsa", {
      modulusLength: 2_048,
      privateKeyEncoding: { type: "pkcs1", format: "pem" },
      publicKeyEncoding: { type: "spki", format: "pem" },
    });
    const secret = "of Probot";
    front.take();
    await using bot = await openProbot(folder, join(PROGRAMS, "probot-app.mjs"), {
      ...at.env,
      ...{ GHE_HOST: new URL(front.url).host, GHE_PROTOCOL: "http", KEY: privateKey, SECRET: secret, APP: "4711" },
    });
    world.simulator.apps.create({
      ...{ id: 4_711, slug: "helper", keys: [privateKey], events: ["issues"] },
      permissions: { metadata: "read", issues: "write", pull_requests: "write" },
      webhook: { url: `${bot.url}/api/github/webhooks`, secret, contentType: "json" },
      installations: [{ account: owner, repositories: [repo] }],
    });
    const made = await fetch(`${world.url}/repos/${repo}/issues`, {
      method: "POST",
      headers: { authorization: `token ${world.token}`, "user-agent": "test" },
      body: JSON.stringify({ title: "For Probot" }),
    });
    const { number } = (await made.json()) as Json;
    await bot.heard("answered");
    tell("Probot");
    const [comment] = (await world.get(`/repos/${repo}/issues/${number}/comments`)).body as Json;
    expect([comment.body, comment.user.login]).toEqual([`Thanks for "For Probot", one of 1.`, "helper[bot]"]);
  });

  test("Renovate finds what to update (dry run)", async () => {
    const folder = await fromNpm("renovate", "44.121.2");
    const { front, repo, home } = at;
    const config = join(home, "renovate.json");
    writeFileSync(
      config,
      JSON.stringify({
        ...{ platform: "github", endpoint: `${front.url}/api/v3/`, token: PERSON.token, repositories: [repo] },
        ...{ dryRun: "full", onboarding: false, requireConfig: "optional", enabledManagers: ["custom.regex"] },
        ...{ baseDir: join(home, "renovate"), gitAuthor: "A tool <tool@example.test>", githubTokenWarn: false },
        customManagers: [
          {
            customType: "regex",
            managerFilePatterns: ["/^versions\\.env$/"],
            matchStrings: ["TOOL=(?<currentValue>\\S+)"],
            datasourceTemplate: "github-releases",
            depNameTemplate: repo,
            registryUrlTemplate: front.url,
          },
        ],
      }),
    );
    front.take();
    // It refuses to work with another Node than its own.
    const its = await fromNpm(`node-${process.platform}-${process.arch}`, "24.21.0");
    const program = join(its, "node_modules", `node-${process.platform}-${process.arch}`, "bin", "node");
    const settings = { RENOVATE_CONFIG_FILE: config, LOG_LEVEL: "debug", LOG_FORMAT: "json" };
    const log = await ran(program, [binOf(folder, "renovate")], settings);
    tell("Renovate");
    const lines = log.split("\n").flatMap((line): Json[] => (line.startsWith("{") ? [JSON.parse(line)] : []));
    const found = lines.find(({ msg }) => msg === "packageFiles with updates")?.config.regex[0].deps[0];
    expect(found).toMatchObject({ depName: repo, currentValue: "v1.0.0", warnings: [] });
    expect(found.updates.map((one: Json) => one.updateType).sort()).toEqual(["major", "minor"]);
  });
});

/** Runs a program of npm's with the Node that runs the tests. */
function node(folder: string, name: string, args: readonly string[], env: NodeJS.ProcessEnv = {}, cwd?: string) {
  return ran(process.execPath, [binOf(folder, name), ...args], env, cwd);
}
