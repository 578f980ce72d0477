import { createTarget, removeTarget, type TargetConfig } from "../../src/events/target.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { openTargetServer, type TargetServer } from "./target-server.ts";
import { type ToldRepository, tell } from "./tell.ts";

export const SECRET = "a secret of the target's";

/** A mirror of two repositories, whose workers send, and targets that are there for one test. */
export class SendingWorld implements AsyncDisposable {
  readonly world: TestWorld;
  readonly #repositories: readonly ToldRepository[];
  readonly #opened: TargetServer[] = [];
  readonly #made: number[] = [];

  private constructor(world: TestWorld, repositories: readonly ToldRepository[]) {
    this.world = world;
    this.#repositories = repositories;
  }

  static async open(): Promise<SendingWorld> {
    const world = await openWorld({
      fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 2, issues: 3, pulls: 0 }),
      env: { TARGETS_ALLOWED: "127.0.0.1", TARGETS_RETRY_FOR: "1h" },
    });
    const state = (await (await fetch(`${world.simulator.url}/-/state`)).json()) as {
      repositories: { full_name: string }[];
    };
    await world.mirror(...state.repositories.map(({ full_name }) => full_name));
    const repositories = await Promise.all(
      state.repositories.map(async ({ full_name }) => {
        const { body } = await world.get(`/repos/${full_name}`);
        return body as ToldRepository;
      }),
    );
    return new SendingWorld(world, repositories);
  }

  at(index: number): ToldRepository {
    const repository = this.#repositories[index];
    if (!repository) throw new Error(`Upstream has no repository ${index}`);
    return repository;
  }

  async openServer(): Promise<TargetServer> {
    const server = await openTargetServer();
    this.#opened.push(server);
    return server;
  }

  async register(url: string, given: Partial<TargetConfig> & { repository?: ToldRepository } = {}): Promise<number> {
    const { repository, ...config } = given;
    const { id } = await createTarget(this.world.ctx, {
      scope: repository ? { kind: "repository", id: repository.id } : { kind: "everything", id: 0 },
      madeBy: "operator",
      ...{ url, contentType: "json", insecureSsl: false, secret: SECRET, events: ["*"], active: true, rewriteTo: null },
      ...config,
    });
    this.#made.push(id);
    return id;
  }

  /** Tells of an event that the mirror does not follow. */
  starred(repository: ToldRepository, number = 0): Promise<string> {
    return tell(this.world, { event: "star", payload: { action: "created", number, repository } });
  }

  /** Tells of an event that the mirror follows. */
  async renamed(repository: ToldRepository, title: string): Promise<string> {
    const { body } = await this.world.get(`/repos/${repository.full_name}/issues/1`);
    const issue = {
      ...(body as object),
      title,
      updated_at: new Date(this.world.ctx.clock.now().getTime() + 3_600_000).toISOString(),
    };
    return tell(this.world, { event: "issues", payload: { action: "edited", issue, changes: {}, repository } });
  }

  /** Removes the targets of the test that is over. */
  async clear(): Promise<void> {
    for (const id of this.#made.splice(0)) await removeTarget(this.world.ctx, id);
    for (const server of this.#opened.splice(0)) await server[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.world[Symbol.asyncDispose]();
  }
}
