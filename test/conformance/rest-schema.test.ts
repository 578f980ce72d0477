import { expect, test } from "vitest";
import type { ServedOperation } from "../../src/api/call/operation.ts";
import { MIRROR_OPERATIONS, PART_OPERATIONS } from "../../src/api/operations.ts";
import { MIRROR_PARTS } from "../../src/config/parts.ts";
import { checkApp, createCheckRun, createStatus } from "../../src/simulator/changes/checks.ts";
import { addTeam } from "../../src/simulator/changes/people.ts";
import { addAsset } from "../../src/simulator/changes/releases.ts";
import { addCode } from "../../src/simulator/generate/generate-code.ts";
import { addIssueEvents } from "../../src/simulator/generate/generate-events.ts";
import { loadHistory } from "../../src/simulator/generate/histories.ts";
import type { User } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { type ApiWorld, openApiWorld } from "../api/api-world.ts";
import { answerSchema, BLANK, problemsOf, readDescription } from "../simulator/openapi.ts";
import { mirrorParts } from "../support/mirrored.ts";
import { findRecording } from "../support/recording.ts";

const archive = findRecording("tls13-spec-history.json.gz");
const description = readDescription();

/** Served, and in the service's answers to redirects and `Link`, but not in its description. */
const UNDESCRIBED: Record<string, string> = {
  "/organizations/{}": "/orgs/{}",
  "/organizations/{}/repos": "/orgs/{}/repos",
  "/organizations/{}/issues": "/orgs/{}/issues",
  "/user/{}/repos": "/users/{}/repos",
  ...Object.fromEntries(
    ["/members", "/members/{}", "/public_members", "/public_members/{}", "/teams"].map((path) => [
      ...[`/organizations/{}${path}`, `/orgs/{}${path}`],
    ]),
  ),
  ...Object.fromEntries(
    ["", "/members", "/memberships/{}"].map((path) => [
      ...[`/organizations/{}/team/{}${path}`, `/orgs/{}/teams/{}${path}`],
    ]),
  ),
};

const described = new Map(Object.keys(description.paths).map((path) => [path.replace(/\{[^}]*\}/g, "{}"), path]));

/** A read that we serve, with where the service describes it. */
function readOf({ path, route }: ServedOperation) {
  const isBelow = route.run.of === "repository";
  const below = path === "/" && isBelow ? "" : path;
  const form = (isBelow ? "/repos/{}/{}" : "") + below.replace(/:\w+/g, "{}");
  return {
    path: isBelow ? `:repository${below}` : path,
    form,
    template: described.get(UNDESCRIBED[form] ?? form),
    isPart: route.part !== undefined,
  };
}
const reads = MIRROR_OPERATIONS.filter(({ route }) => route.method === "GET").map(readOf);
const partReads = PART_OPERATIONS.map(readOf);

test("the service describes everything that we serve", () => {
  expect([...reads, ...partReads].filter(({ template }) => template === undefined)).toEqual([]);
});

/** What stands for the parts of a path, by what comes before it: what the world really holds. */
async function examples(world: ApiWorld, repository: string): Promise<(path: string) => string[]> {
  const list = async (path: string) => (await world.getUpstream(`/repos/${repository}${path}`)).body;
  const pulls = (await list("/pulls?state=all&per_page=100")) as { number: number }[];
  const reviews: string[] = [];
  for (const { number } of pulls) {
    if (reviews.length >= 5) break;
    const found = (await list(`/pulls/${number}/reviews`)) as { id: number }[];
    reviews.push(...found.slice(0, 2).map(({ id }) => `/pulls/${number}/reviews/${id}`));
  }
  const ids = async (path: string, key: string) =>
    ((await list(path)) as Record<string, string | number>[]).slice(0, 10).map((row) => String(row[key]));
  const first = async (path: string) => ids(path, path.startsWith("/labels") ? "name" : "number");
  const heads = ((await list("/pulls?per_page=100")) as { head: { sha: string } }[]).map(({ head }) => head.sha);
  const checksOf = async (path: "check-runs" | "check-suites", key: "check_runs" | "check_suites") => {
    const found: string[] = [];
    for (const sha of heads) {
      const { [key]: some } = (await list(`/commits/${sha}/${path}`)) as Record<string, { id: number }[]>;
      found.push(...(some ?? []).map(({ id }) => `/${path}/${id}`));
    }
    return found;
  };
  const runsOfHeads = await checksOf("check-runs", "check_runs");
  const { checkRuns } = world.upstream.world.code;
  // Annotations, and whether more of them come, only upstream tells.
  const plain = runsOfHeads.filter((path) => {
    const run = checkRuns.get(Number(path.split("/").at(-1)));
    return run?.status === "completed" && run.annotations.length === 0;
  });
  const deploymentStatuses = async () => {
    const found: string[] = [];
    for (const id of await ids("/deployments", "id"))
      found.push(
        ...(await ids(`/deployments/${id}/statuses`, "id")).map((one) => `/deployments/${id}/statuses/${one}`),
      );
    return found;
  };
  const runs = ((await list("/actions/runs")) as { workflow_runs: { id: number }[] }).workflow_runs.slice(0, 5);
  const jobs: string[] = [];
  for (const { id } of runs)
    for (const job of ((await list(`/actions/runs/${id}/jobs`)) as { jobs: { id: number }[] }).jobs)
      jobs.push(`/actions/jobs/${job.id}`);
  const acme = organization(world);
  const member = world.upstream.world.user(acme?.memberIds[0] ?? 0).login;
  const team = [...world.upstream.world.teams.values()].find(({ organizationId }) => organizationId === acme?.id);
  const ofTeam = `/orgs/${acme?.login}/teams/${team?.slug}`;
  const byTeamId = `/organizations/${acme?.id}/team/${team?.id}`;
  const known: [RegExp, string[]][] = [
    [/\/actions\/workflows\/:workflow/, ["/actions/workflows/ci.yml"]],
    [/\/actions\/runs\/:id/, runs.map(({ id }) => `/actions/runs/${id}`)],
    [/\/actions\/jobs\/:id/, jobs],
    [/\/commits\/:ref(?=$|\/pulls$)/, (await ids("/commits", "sha")).slice(0, 3).map((sha) => `/commits/${sha}`)],
    [/\/commits\/:ref/, heads.slice(0, 5).map((sha) => `/commits/${sha}`)],
    [/\/check-runs\/:id(?=\/annotations$)/, plain],
    [/\/check-runs\/:id/, runsOfHeads],
    [/\/git\/commits\/:sha/, (await ids("/commits", "sha")).slice(0, 3).map((sha) => `/git/commits/${sha}`)],
    [/\/deployments\/:id\/statuses\/:status/, await deploymentStatuses()],
    [/\/deployments\/:id/, (await ids("/deployments", "id")).map((id) => `/deployments/${id}`)],
    [/\/releases\/:id/, (await ids("/releases", "id")).map((id) => `/releases/${id}`)],
    [/\/releases\/tags\/:tag/, (await ids("/releases", "tag_name")).map((tag) => `/releases/tags/${tag}`)],
    [/\/branches\/:branch/, ["/branches/never-was", "/branches/main"]],
    [/\/git\/ref\/:ref/, ["/git/ref/heads/main", `/git/ref/tags/${(await ids("/tags", "name"))[0]}`]],
    [/\/git\/matching-refs\/:ref/, ["/git/matching-refs/heads/m", "/git/matching-refs/tags/v"]],
    [/\/check-suites\/:id/, await checksOf("check-suites", "check_suites")],
    [/\/pulls\/:number\/reviews\/:id/, reviews],
    [/\/pulls\/comments\/:id/, (await ids("/pulls/comments", "id")).map((id) => `/pulls/comments/${id}`)],
    [/\/issues\/comments\/:id/, (await ids("/issues/comments", "id")).map((id) => `/issues/comments/${id}`)],
    [/\/issues\/events\/:id/, (await ids("/issues/events", "id")).map((id) => `/issues/events/${id}`)],
    [/\/issues\/:number/, (await first("/issues?state=all")).map((number) => `/issues/${number}`)],
    [/\/pulls\/:number/, pulls.slice(0, 10).map(({ number }) => `/pulls/${number}`)],
    [/\/milestones\/:number/, (await first("/milestones?state=all")).map((number) => `/milestones/${number}`)],
    [/\/labels\/:name/, (await first("/labels")).map((name) => `/labels/${encodeURIComponent(name)}`)],
    [/\/assignees\/:assignee/, [`/assignees/${(await world.get(`/repos/${repository}/assignees`)).body[0]?.login}`]],
    [/\/collaborators\/:username/, (await ids("/collaborators", "login")).map((login) => `/collaborators/${login}`)],
    [/\/orgs\/:login\/(members|public_members)\/:username/, [`/orgs/${acme?.login}/members/${member}`]],
    [/\/organizations\/:id\/(members|public_members)\/:username/, [`/organizations/${acme?.id}/members/${member}`]],
    [/\/orgs\/:login\/teams\/:slug\/memberships\/:username/, [`${ofTeam}/memberships/${member}`]],
    [/\/organizations\/:id\/team\/:team\/memberships\/:username/, [`${byTeamId}/memberships/${member}`]],
    [/\/orgs\/:login\/teams\/:slug/, [ofTeam]],
    [/\/organizations\/:id\/team\/:team/, [byTeamId]],
    [/\/users\/:login/, ["/users/mirror-owner", `/users/${repository.split("/")[0]}`]],
    [/\/user\/:id/, [`/user/${world.userId}`]],
    [/\/orgs\/:login/, [`/orgs/${organization(world)?.login}`]],
    [/\/organizations\/:id/, [`/organizations/${organization(world)?.id}`]],
  ];
  return (path) => {
    const at = path.replace(":repository", `/repos/${repository}`);
    const example = known.find(([form]) => form.test(at));
    if (!example) return [at];
    return example[1].map((value) => at.replace(example[0], value));
  };
}

function organization(world: ApiWorld): User | undefined {
  return [...world.upstream.world.users.values()].find(({ type }) => type === "Organization");
}

/** What is wrong with the answers, in both versions of the dialect. `absent`: what this world cannot show. */
async function problems(
  world: ApiWorld,
  repository: string,
  { asking = reads, absent = [] }: { asking?: typeof reads; absent?: string[] } = {},
): Promise<string[]> {
  const of = await examples(world, repository);
  const wrong: string[] = [];
  for (const { path, template, isPart } of asking) {
    const asked = of(path);
    if (asked.length === 0 && !absent.includes(path)) wrong.push(`${path}: this world has no example of it`);
    for (const version of ["2022-11-28", "2026-03-10"]) {
      for (const one of asked) {
        const query = /\/(issues|pulls|milestones|repos)$/.test(one) ? "?state=all&filter=all&per_page=100" : "";
        const answer = await world.get(one + query, { headers: { "x-github-api-version": version } });
        const responses = description.paths[template as string]?.get?.responses;
        if (answer.status === 404 && /\/merge$/.test(one)) continue;
        if (isPart && answer.headers.has("x-tain-passed-through")) wrong.push(`${one}: it was forwarded`);
        if (!(String(answer.status) in responses)) wrong.push(`${one}: ${answer.status} ${answer.text.slice(0, 200)}`);
        if (answer.status !== 200 || answer.body === null) continue;
        // The description is the older version's; the newer one leaves these out (x-github-breaking-changes).
        const found = problemsOf(description, answerSchema(description, "get", template as string, "200"), answer.body);
        const left = found.filter(
          (problem) => !BLANK.test(problem) && (version === "2022-11-28" || !DROPPED.test(problem)),
        );
        wrong.push(...left.map((problem) => `${version} ${path} ${problem.replace(/\[\d+\]/g, "[]")}`));
      }
    }
  }
  return [...new Set(wrong)];
}

/** Adds what the generated world lacks: code, an asset of a release, check runs and statuses. */
function addParts({ upstream: { world } }: ApiWorld, fullName: string): void {
  const [owner = "", name = ""] = fullName.split("/");
  const repository = world.repositoryByName(owner, name)?.repository;
  if (!repository) throw new Error(`${fullName} is not there`);
  for (const organization of world.users.values())
    if (organization.type === "Organization")
      addTeam(world, { organization, name: "One", members: organization.memberIds.map((id) => [id, "member"]) });
  const app = checkApp(world, "linter");
  addIssueEvents(world, repository);
  addCode(world, repository, { deployments: 4, workflowRuns: 6 }, 7, world.now());
  const [release] = world.code.of(repository).releases.values();
  if (release) addAsset(world, repository.ownerId, release, { name: "tain.zip" });
  const heads = [...repository.rows.issuesByCreated.ascending()].filter(isPull).filter(({ state }) => state === "open");
  for (const { pull } of heads) {
    const of = { repository, headSha: pull.head.sha, app };
    createCheckRun(world, repository.ownerId, { ...of, name: "build", conclusion: "success" });
    createStatus(world, repository.ownerId, { repository, sha: pull.head.sha, state: "success", context: "ci" });
  }
}

const DROPPED = /\.(assignee|merge_commit_sha|has_downloads|rate|hub_url|authorizations_url): missing$/;

test("every read of a generated world has the shape that the service's description gives it", async () => {
  await using world = await openApiWorld({
    issues: 40,
    env: { RATE_LIMIT_USER: "0", MIRROR: MIRROR_PARTS.join() },
  });
  const first = world.repositories[0]?.fullName as string;
  addParts(world, first);
  await mirrorParts(world.ctx);
  expect(await problems(world, first, { asking: [...reads, ...partReads] })).toEqual([]);
});

test.skipIf(!archive.exists)(`and so has every read of a real history ${archive.reason}`, async () => {
  await using world = await openApiWorld({
    fill: async (upstream) => void (await loadHistory(upstream, archive.path)),
    env: { RATE_LIMIT_USER: "0" },
  });
  // Its archive holds no milestones.
  const absent = [":repository/milestones/:number", ":repository/milestones/:number/labels"];
  expect(await problems(world, "tlswg/tls13-spec", { absent })).toEqual([]);
});
