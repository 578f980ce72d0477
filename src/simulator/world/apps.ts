/**
 * GitHub Apps and where they are installed. An App belongs to the service, an installation to an account; a suspended
 * one is still listed but gives no access, a deleted one is as if it had never been.
 */
import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import type { WorldEvent } from "./event.ts";
import type { Permissions } from "./permissions.ts";
import type { Endpoint, Repository, Seconds, User } from "./records.ts";
import { Refusal } from "./refusal.ts";
import type { World } from "./world.ts";

export interface App {
  readonly id: number;
  readonly clientId: string;
  readonly slug: string;
  name: string;
  readonly ownerId: number;
  /** `slug[bot]`, as which its installations act. */
  readonly botId: number;
  /** Any of them verifies: an App may have several keys while they are rotated. */
  keys: readonly KeyObject[];
  permissions: Permissions;
  events: readonly string[];
  readonly hook: AppHook;
  /** Whether installation tokens are `ghs_<app id>_<JWT>` (about 520 characters) unless a request says otherwise. */
  longTokens: boolean;
  readonly createdAt: Seconds;
  updatedAt: Seconds;
}

/** An App's one webhook. Without an address nothing is sent. */
export interface AppHook extends Endpoint {
  readonly appId: number;
}

export interface Installation {
  readonly id: number;
  readonly app: App;
  readonly accountId: number;
  /** "all": everything that the account owns, now and later. */
  repositoryIds: ReadonlySet<number> | "all";
  /** What was granted: an App that asks for more gets it once the account has accepted. */
  permissions: Permissions;
  events: readonly string[];
  suspendedAt: Seconds | null;
  suspendedById: number | null;
  readonly createdAt: Seconds;
  updatedAt: Seconds;
  deleted: boolean;
}

export interface InstallationEvent {
  readonly event: "installation" | "installation_repositories";
  readonly action: string;
  readonly installation: Installation;
  readonly senderId: number;
  /** `installation` events: what it covers. */
  readonly repositories?: readonly Repository[];
  readonly added?: readonly Repository[];
  readonly removed?: readonly Repository[];
}

export interface AppInput {
  readonly id?: number;
  readonly clientId?: string;
  readonly slug: string;
  readonly name?: string;
  /** Login; an account that does not exist yet is made. Default: the slug. */
  readonly owner?: string;
  /** RSA keys in PEM, public or private. Absent: a pair is made, see `NewApp`. */
  readonly keys?: readonly string[];
  readonly permissions?: Permissions;
  readonly events?: readonly string[];
  readonly webhook?: { readonly url?: string; readonly secret?: string; readonly contentType?: "json" | "form" };
  readonly longTokens?: boolean;
  readonly installations?: readonly Omit<InstallationInput, "app">[];
}

export interface InstallationInput {
  readonly id?: number;
  /** Login. */
  readonly account: string;
  /** Full names, or all. Default all. */
  readonly repositories?: "all" | readonly string[];
  readonly permissions?: Permissions;
  readonly events?: readonly string[];
}

export interface NewApp {
  readonly app: App;
  /** PEM; only when no key was given. */
  readonly privateKey: string | null;
}

// GitHub docs: metadata is mandatory.
const DEFAULT_PERMISSIONS: Permissions = { metadata: "read", issues: "read", pull_requests: "read", contents: "read" };

export class Apps {
  readonly byId = new Map<number, App>();
  readonly installations = new Map<number, Installation>();
  readonly #world: World;
  readonly #listeners = new Set<(event: InstallationEvent) => void>();

  constructor(world: World) {
    this.#world = world;
    world.onEvent((event) => this.#follow(event));
  }

  onEvent(listener: (event: InstallationEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Throws a sentence about what is wrong with the input. Its installations were there all along: no event. */
  create(input: AppInput): NewApp {
    if (!/^[a-z0-9][a-z0-9-]*$/.test(input.slug ?? "")) throw new Error(`An App needs a slug, not "${input.slug}"`);
    const world = this.#world;
    const id = input.id ?? world.nextId("app");
    if (this.byId.has(id)) throw new Error(`There is an App ${id} already`);
    const owner = this.#account(input.owner ?? input.slug);
    const bot = world.userByLogin(`${input.slug}[bot]`) ?? world.addUser({ login: `${input.slug}[bot]`, type: "Bot" });
    const pair = input.keys?.length ? null : generateKeyPairSync("rsa", { modulusLength: 2048 });
    const now = world.now();
    const { webhook = {} } = input;
    const events = input.events ?? [];
    const hook: AppHook = {
      appId: id,
      id: world.nextId("hook"),
      url: webhook.url ?? "",
      secret: webhook.secret ?? null,
      contentType: webhook.contentType ?? "json",
      insecureSsl: "0",
      active: true,
      events,
      createdAt: now,
      updatedAt: now,
      lastResponse: { code: null, status: "unused", message: null },
    };
    const app: App = {
      id,
      clientId: input.clientId ?? `Iv23${world.random.hex(16)}`,
      slug: input.slug,
      name: input.name ?? input.slug,
      ownerId: owner.id,
      botId: bot.id,
      keys: pair ? [pair.publicKey] : publicKeys(input.keys ?? []),
      permissions: { ...(input.permissions ?? DEFAULT_PERMISSIONS), metadata: "read" },
      events,
      hook,
      longTokens: input.longTokens ?? true,
      createdAt: now,
      updatedAt: now,
    };
    this.byId.set(id, app);
    this.#world.code.apps.set(app.slug, app);
    for (const one of input.installations ?? []) this.#add(app, one);
    return { app, privateKey: pair ? String(pair.privateKey.export({ type: "pkcs1", format: "pem" })) : null };
  }

  /** By app id (as a number or in digits) or client id: what a JWT calls its issuer. */
  byIssuer(issuer: string | number): App | undefined {
    const text = String(issuer);
    if (/^\d+$/.test(text)) return this.byId.get(Number(text));
    return [...this.byId.values()].find((app) => app.clientId === text);
  }

  /** What it asks for; installations keep what they granted until they accept. */
  edit(app: App, edit: Pick<AppInput, "name" | "keys" | "permissions" | "events" | "webhook" | "longTokens">): void {
    const { webhook } = edit;
    if (edit.keys) app.keys = publicKeys(edit.keys);
    if (edit.permissions) app.permissions = { ...edit.permissions, metadata: "read" };
    app.events = edit.events ?? app.events;
    app.name = edit.name ?? app.name;
    app.longTokens = edit.longTokens ?? app.longTokens;
    app.hook.events = app.events;
    app.hook.url = webhook?.url ?? app.hook.url;
    app.hook.secret = webhook?.secret ?? app.hook.secret;
    app.hook.contentType = webhook?.contentType ?? app.hook.contentType;
    app.updatedAt = this.#world.now();
  }

  /** Its installations go first, each with its event. */
  delete(app: App, by: number): void {
    for (const installation of this.of(app)) this.uninstall(installation, by);
    this.byId.delete(app.id);
  }

  /** In the order they were made. */
  of(app: App): Installation[] {
    return [...this.installations.values()].filter((one) => one.app === app);
  }

  ofAccount(app: App, account: User): Installation | undefined {
    return this.of(app).find((one) => one.accountId === account.id);
  }

  /** Those that cover the repository and are not suspended: whose Apps hear of it. */
  covering(repository: Repository): Installation[] {
    return [...this.installations.values()].filter((one) => one.suspendedAt === null && covers(one, repository));
  }

  repositoriesOf(installation: Installation): Repository[] {
    return [...this.#world.repositories.values()].filter((repository) => covers(installation, repository));
  }

  /**
   * Requests an hour beyond the base. GitHub docs give 50 for each repository when there are more than 20, and 50 for
   * each user of an organization with more than 20. Read literally: all of them count, not only those above 20.
   */
  bonusOf(installation: Installation): number {
    const repositories = this.repositoriesOf(installation).length;
    const users = this.#world.user(installation.accountId).memberIds.length;
    return (repositories > 20 ? repositories * 50 : 0) + (users > 20 ? users * 50 : 0);
  }

  // --- What people do with an installation; `by` is a user's id. Each tells its event.

  install(app: App, by: number, input: InstallationInput): Installation {
    const installation = this.#add(app, input);
    this.#tell(installation, by, "created", this.repositoriesOf(installation));
    return installation;
  }

  uninstall(installation: Installation, by: number): void {
    const repositories = this.repositoriesOf(installation);
    installation.deleted = true;
    this.installations.delete(installation.id);
    this.#tell(installation, by, "deleted", repositories);
  }

  suspend(installation: Installation, by: number, suspended: boolean): void {
    if ((installation.suspendedAt !== null) === suspended) return;
    installation.suspendedAt = suspended ? this.#world.now() : null;
    installation.suspendedById = suspended ? by : null;
    this.#tell(installation, by, suspended ? "suspend" : "unsuspend");
  }

  /** What the App asks for by now, or what is given here. */
  acceptPermissions(
    installation: Installation,
    by: number,
    granted: { readonly permissions?: Permissions; readonly events?: readonly string[] } = {},
  ): void {
    installation.permissions = { ...(granted.permissions ?? installation.app.permissions), metadata: "read" };
    installation.events = granted.events ?? installation.app.events;
    this.#tell(installation, by, "new_permissions_accepted");
  }

  /** Replaces what the installation covers. */
  choose(installation: Installation, by: number, repositories: "all" | readonly Repository[]): void {
    const before = new Set(this.repositoriesOf(installation));
    if (repositories !== "all") checkOwned(this.#world, installation, repositories);
    installation.repositoryIds = repositories === "all" ? "all" : new Set(repositories.map(({ id }) => id));
    const after = new Set(this.repositoriesOf(installation));
    this.#tellRepositories(installation, by, "added", [...after.difference(before)]);
    this.#tellRepositories(installation, by, "removed", [...before.difference(after)]);
  }

  /** New ones of an account with "all" join; transferred ones leave and join. */
  #follow({ event, action, repository, senderId, ownerFromId }: WorldEvent): void {
    if (event !== "repository" || (action !== "created" && action !== "transferred")) return;
    for (const installation of this.installations.values()) {
      const { repositoryIds } = installation;
      if (installation.accountId === ownerFromId && (repositoryIds === "all" || repositoryIds.has(repository.id))) {
        if (repositoryIds !== "all") installation.repositoryIds = repositoryIds.difference(new Set([repository.id]));
        this.#tellRepositories(installation, senderId, "removed", [repository]);
      } else if (repositoryIds === "all" && covers(installation, repository)) {
        this.#tellRepositories(installation, senderId, "added", [repository]);
      }
    }
  }

  #add(app: App, input: InstallationInput): Installation {
    const world = this.#world;
    const account = this.#account(input.account);
    if (this.ofAccount(app, account)) throw new Refusal(422, `${app.slug} is installed on ${account.login} already`);
    const id = input.id ?? world.nextId("installation");
    if (this.installations.has(id)) throw new Refusal(422, `There is an installation ${id} already`);
    const chosen = input.repositories ?? "all";
    const repositories = chosen === "all" ? [] : chosen.map((name) => repositoryOf(world, name));
    const now = world.now();
    const installation: Installation = {
      id,
      app,
      accountId: account.id,
      repositoryIds: chosen === "all" ? "all" : new Set(repositories.map((repository) => repository.id)),
      permissions: { ...(input.permissions ?? app.permissions), metadata: "read" },
      events: input.events ?? app.events,
      suspendedAt: null,
      suspendedById: null,
      createdAt: now,
      updatedAt: now,
      deleted: false,
    };
    checkOwned(world, installation, repositories);
    this.installations.set(id, installation);
    return installation;
  }

  #account(login: string | undefined): User {
    if (typeof login !== "string" || login === "") throw new Error("An account (login) is missing");
    return this.#world.userByLogin(login) ?? this.#world.addUser({ login });
  }

  #tell(installation: Installation, senderId: number, action: string, repositories?: readonly Repository[]): void {
    installation.updatedAt = this.#world.now();
    const event: InstallationEvent = {
      event: "installation",
      action,
      installation,
      senderId,
      ...(repositories ? { repositories } : {}),
    };
    for (const listener of this.#listeners) listener(event);
  }

  #tellRepositories(
    installation: Installation,
    senderId: number,
    action: "added" | "removed",
    repositories: readonly Repository[],
  ): void {
    if (repositories.length === 0) return;
    installation.updatedAt = this.#world.now();
    const event: InstallationEvent = {
      event: "installation_repositories",
      action,
      installation,
      senderId,
      [action]: repositories,
    };
    for (const listener of this.#listeners) listener(event);
  }
}

export function covers({ accountId, repositoryIds, deleted }: Installation, repository: Repository): boolean {
  if (deleted || repository.deleted || repository.ownerId !== accountId) return false;
  return repositoryIds === "all" || repositoryIds.has(repository.id);
}

/** PEM → keys; throws a sentence when one is none. */
function publicKeys(pems: readonly string[]): KeyObject[] {
  return pems.map((pem) => {
    try {
      return createPublicKey(pem);
    } catch (error) {
      throw new Error("A key of an App should be an RSA key in PEM", { cause: error });
    }
  });
}

export function repositoryOf(world: World, fullName: string): Repository {
  const [owner = "", name = ""] = String(fullName).split("/");
  const found = world.repositoryByName(owner, name);
  if (!found) throw new Refusal(422, `There is no repository ${fullName}`);
  return found.repository;
}

function checkOwned(world: World, installation: Installation, repositories: readonly Repository[]): void {
  for (const repository of repositories) {
    if (repository.ownerId === installation.accountId) continue;
    const account = world.user(installation.accountId).login;
    throw new Refusal(422, `${world.fullName(repository)} does not belong to ${account}, where the App is installed`);
  }
}
