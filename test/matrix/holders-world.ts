import { generateKeyPairSync } from "node:crypto";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { type HookHolder, hookSecret } from "../../src/config/hook-secrets.ts";
import { MIRROR_PARTS } from "../../src/config/parts.ts";
import { createTarget, type Scope } from "../../src/events/target.ts";
import type { Fields } from "../../src/json.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import { openTargetServer, type TargetServer } from "../events/target-server.ts";
import { askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { mirrorParts } from "../support/mirrored.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import type { Shown, Signing } from "./lies.ts";

/** Somebody who has one secret, and what it covers. */
export interface Signer {
  name: "a repository's secret" | "an organization's secret" | "the App's secret";
  holder: HookHolder;
  secret: string;
  signing: Signing;
}

/** Somebody else's repository, with the targets that hear of it. */
export interface Victim {
  shown: Shown;
  fullName: string;
  id: number;
  secret: string;
}

interface HeardTarget {
  name: string;
  scope: Scope;
  secret: string;
  server: TargetServer;
}

export interface HoldersWorld extends AsyncDisposable {
  world: TestWorld;
  signers: readonly Signer[];
  victims: readonly Victim[];
  targets: readonly HeardTarget[];
  /** What the signers' secrets cover between them. */
  own: { repositoryIds: number[]; accountIds: number[]; installationIds: number[] };
  /** Callers who look at the victims' repositories. Null: no token. */
  callers: Readonly<Record<string, string | null>>;
}

const UNLIMITED = 1e9;
const APP_ID = 4711;

/** An account and its one repository with one of everything. */
function addHome(
  { world }: Pick<Simulator, "world">,
  {
    login,
    name,
    visibility,
    organization,
  }: { login: string; name: string; visibility: "public" | "private"; organization: boolean },
): void {
  const author = world.addUser({ login: `${login}-author` });
  const owner = world.addUser({
    login,
    ...(organization ? { type: "Organization" as const, memberIds: [author.id] } : {}),
  });
  const repository = world.addRepository({ ownerId: owner.id, name, visibility, description: `home of ${login}` });
  const label = world.addLabel({ repository, name: `label-of-${login}` });
  const milestone = world.addMilestone({ repository, title: `goal of ${login}` });
  const usual = { repository, authorId: author.id, labelIds: [label.id], milestoneId: milestone.id };
  const issue = world.addIssue({ ...usual, title: `issue of ${login}`, body: `words of ${login}` });
  world.addComment({ issue, authorId: author.id, body: `comment of ${login}` });
  const end = (ref: string) => ({
    ...{ ref, sha: world.newSha(), label: `${login}:${ref}`, userId: owner.id, repositoryId: repository.id },
  });
  const pull = world.addIssue({
    ...usual,
    title: `pull request of ${login}`,
    pull: { head: end("topic"), base: end("main"), changedFiles: 1, additions: 1 },
  });
  const review = world.addReview({ issue: pull, authorId: author.id, state: "APPROVED", body: `review of ${login}` });
  const commitId = pull.pull?.head.sha ?? "";
  world.addReviewComment({
    ...{ issue: pull, authorId: author.id, body: `remark of ${login}`, path: "a.ts", commitId, reviewId: review.id },
  });
}

const HOMES = [
  { login: "mallory", name: "own", visibility: "public", organization: false },
  { login: "corp", name: "site", visibility: "public", organization: true },
  { login: "installed", name: "tool", visibility: "public", organization: true },
  { login: "acme", name: "vault", visibility: "private", organization: true },
  { login: "alice", name: "diary", visibility: "public", organization: false },
] as const;
const VICTIMS = ["acme/vault", "alice/diary"];

async function shownBy(simulator: Simulator, fullName: string): Promise<Shown> {
  const ask = async (path: string) =>
    (await askAt(simulator.url, "GET", path, { token: UPSTREAM_TOKEN })).body as Fields & Fields[];
  const at = `/repos/${fullName}`;
  const repository: Fields = await ask(at);
  const owner = repository.owner as Fields;
  const [issue, pull, comment, reviewComment, label, milestone] = await Promise.all([
    ask(`${at}/issues/1`),
    ask(`${at}/pulls/2`),
    ask(`${at}/issues/comments`).then((all) => all[0] as Fields),
    ask(`${at}/pulls/comments`).then((all) => all[0] as Fields),
    ask(`${at}/labels`).then((all) => all[0] as Fields),
    ask(`${at}/milestones`).then((all) => all[0] as Fields),
  ]);
  const [review] = await ask(`${at}/pulls/2/reviews`);
  return {
    ...{ repository, owner, issue, pull, comment, reviewComment, label, milestone, review: review as Fields },
    organization: owner.type === "Organization" ? owner : null,
  };
}

export async function openHoldersWorld(): Promise<HoldersWorld> {
  await using opening = new AsyncDisposableStack();
  const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const world = opening.use(
    await openWorld({
      env: {
        MIRROR: MIRROR_PARTS.join(),
        TARGETS_ALLOWED: "127.0.0.1",
        RATE_LIMIT_ANONYMOUS: "0",
        RATE_LIMIT_USER: "0",
        RATE_LIMIT_GRAPHQL: "0",
        RATE_LIMIT_SEARCH_ANONYMOUS: "0",
        RATE_LIMIT_SEARCH_USER: "0",
        APP_ID: String(APP_ID),
        APP_PRIVATE_KEY: String(pair.privateKey.export({ type: "pkcs1", format: "pem" })),
      },
      fill: (simulator) => {
        for (const home of HOMES) addHome(simulator, home);
        simulator.apps.create({
          ...{ id: APP_ID, slug: "mirror", events: ["issues"], installations: [{ account: "installed" }] },
          keys: [String(pair.publicKey.export({ type: "spki", format: "pem" }))],
        });
        const { limits } = simulator.quota;
        for (const name of Object.keys(limits)) Object.assign(limits, { [name]: UNLIMITED });
      },
    }),
  );
  const { ctx, simulator } = world;
  await world.mirror(...HOMES.map(({ login, name }) => `${login}/${name}`));
  await world.settleMarks();
  await mirrorParts(ctx);
  await world.settleMarks();
  const shown = new Map<string, Shown>();
  for (const { login, name } of HOMES) shown.set(`${login}/${name}`, await shownBy(simulator, `${login}/${name}`));
  const of = (fullName: string): Shown => {
    const found = shown.get(fullName);
    if (!found) throw new Error(`Upstream has no ${fullName}`);
    return found;
  };
  const [installation] = simulator.apps.of(simulator.apps.byIssuer(APP_ID) as never);
  if (!installation) throw new Error("The App is not installed");
  const secretOf = (holder: HookHolder) => hookSecret(ctx.config.webhookSecrets[0] ?? "", holder);
  const signer = (name: Signer["name"], type: HookHolder["type"], fullName: string): Signer => {
    const it = of(fullName);
    const id = type === "repository" ? it.repository.id : type === "organization" ? it.owner.id : APP_ID;
    const holder = { type, id: Number(id) };
    const account = { id: it.owner.id ?? null, login: it.owner.login ?? null, type: "Organization" };
    const installed = type === "integration" ? { id: installation.id, account, app_id: APP_ID } : null;
    return { name, holder, secret: secretOf(holder), signing: { ...it, installation: installed } };
  };
  const signers = [
    signer("a repository's secret", "repository", "mallory/own"),
    signer("an organization's secret", "organization", "corp/site"),
    signer("the App's secret", "integration", "installed/tool"),
  ];
  const victims = VICTIMS.map((fullName): Victim => {
    const id = Number(of(fullName).repository.id);
    return { shown: of(fullName), fullName, id, secret: secretOf({ type: "repository", id }) };
  });
  const scopes: [string, Scope][] = [
    ["of everything", { kind: "everything", id: 0 }],
    ["of acme", { kind: "organization", id: Number(of("acme/vault").owner.id) }],
    ["of alice", { kind: "organization", id: Number(of("alice/diary").owner.id) }],
    ...victims.map(({ fullName, id }): [string, Scope] => [`of ${fullName}`, { kind: "repository", id }]),
  ];
  const targets: HeardTarget[] = [];
  for (const [name, scope] of scopes) {
    const server = opening.use(await openTargetServer());
    const secret = `the secret of the target ${name}`;
    await createTarget(ctx, {
      ...{ scope, madeBy: "operator", url: server.url, contentType: "json", insecureSsl: false, secret },
      ...{ events: ["*"], active: true, rewriteTo: null },
    });
    targets.push({ name, scope, secret, server });
  }
  const owned = signers.map(({ signing }) => signing);
  const repositoryIds = owned.map(({ repository }) => Number(repository.id));
  const userId = Number(of("mallory/own").owner.id);
  const member = simulator.tokens.create({ login: "acme-author" }).value;
  const everything = opening.move();
  return {
    ...{ world, signers, victims, targets },
    own: {
      repositoryIds,
      accountIds: owned.map(({ owner }) => Number(owner.id)),
      installationIds: [installation.id],
    },
    callers: {
      nobody: null,
      "Tain's token that reads all": await createApiToken(ctx, { userId, canWrite: false }),
      "Tain's token for the signers' own repositories": await createApiToken(ctx, {
        ...{ userId, canWrite: true, scope: { repositoryIds, ownerIds: [] } },
      }),
      "a member's token": member,
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

/**
 * Tables of what the mirror does, and not of what it holds. Targets are judged by what they hear, and when each last
 * heard is written beside them.
 */
const OF_WORK = new Set(
  `api_tokens deliveries eras event_log exclusive_work graphql_sizes listeners origin revisions schema_migrations shapes sweeps
  target_asks target_cursors target_deliveries targets token_owners turns upkeep upstream_lacks validators writes`.split(
    /\s+/,
  ),
);

/**
 * Every row that no signer owns, with its table. An empty table: the row tells of nobody who is known.
 * @param guids of deliveries that the victims' own hooks sent
 */
export async function foreignRows(
  { world: { ctx }, own, victims }: HoldersWorld,
  guids: ReadonlySet<string>,
): Promise<Map<string, string>> {
  const { db } = ctx;
  const tables = await db.query<{ name: string }>(sql`
    select table_name as name from information_schema.tables
      where table_schema = current_schema() and table_type = 'BASE TABLE' order by 1`);
  const rows = new Map<string, string>();
  for (const { name } of tables) {
    if (OF_WORK.has(name)) continue;
    const all = await db.query<Record<string, unknown>>(sql`select * from ${sql.identifier(name)}`);
    for (const row of all) {
      if (isOwn(name, row, own) || (name === "events" && guids.has(String(row.guid)))) continue;
      rows.set(`${name} ${JSON.stringify(toldBy(name, row))}`, tellsOf(name, row, victims) ? name : "");
    }
  }
  return rows;
}

/** What one account is known by. The rest of its row is whatever upstream showed when it was last read. */
const OF_ACCOUNT = ["id", "node_id", "login", "type", "site_admin", "avatar_url"];

/** When something was last read or heard of. Time alone moves these. */
const OF_READS = /(read|heard|told|synced|confirmed|checked)_at$/;

function toldBy(table: string, row: Record<string, unknown>): Record<string, unknown> {
  const isTold = (key: string) => (table === "users" ? OF_ACCOUNT.includes(key) : !OF_READS.test(key));
  return Object.fromEntries(Object.entries(row).filter(([key]) => isTold(key)));
}

/** New accounts and repositories may be met in a payload, and be asked about, but not as one that is there already. */
function tellsOf(table: string, row: Record<string, unknown>, victims: readonly Victim[]): boolean {
  const { id, full_name: fullName, kind, key } = row;
  const isAny = (of: (victim: Victim) => unknown[], value: unknown) =>
    victims.some((victim) => of(victim).some((one) => String(one) === String(value).toLowerCase()));
  const people = ({ shown }: Victim) => [shown.owner, shown.issue.user as Fields];
  // A login on a second row is whose upstream shows it: lookups prefer the row that was read, and answers are compared.
  if (table === "users") return isAny((one) => people(one).map((user) => user.id), id);
  if (table === "repositories") return isAny((one) => [one.id], id) || isAny((one) => [one.fullName], fullName);
  if (table === "former_names") return isAny((one) => [one.fullName], fullName);
  if (table === "refresh_marks" && kind === "user") return false; // Whoever is met may be asked about.
  if (table === "refresh_marks" && kind === "repository") return isAny((one) => [one.id], key);
  return true;
}

function isOwn(table: string, row: Record<string, unknown>, own: HoldersWorld["own"]): boolean {
  const number = (key: string) => Number(row[key] ?? Number.NaN);
  if (table === "repositories") return own.repositoryIds.includes(number("id"));
  if (table === "users") return own.accountIds.includes(number("id"));
  if (table === "installations") return own.installationIds.includes(number("id"));
  if (table === "refresh_marks" && row.kind === "repository") return own.repositoryIds.includes(number("key"));
  if (table === "events" && number("repository_id") === 0)
    return row.owner_id === null || own.accountIds.includes(number("owner_id"));
  if (table === "problems" && row.repository_id === null)
    return own.repositoryIds.some((id) => String(row.key).includes(String(id)));
  return own.repositoryIds.includes(number("repository_id"));
}
