import { sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { repositoriesOf } from "../support/mirrored.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { type FeedAsking, FeedReader } from "./feed-reader.ts";
import { type ToldRepository, tell } from "./tell.ts";

/** A mirror whose feed is read. */
export interface FeedWorld {
  world: TestWorld;
  open: ToldRepository;
  hidden: ToldRepository;
  /** A token that may only see what is public. */
  stranger: string;
  userId: number;
  /** Reads the feed, as the mirror's own token unless told otherwise. */
  follow(asking?: Partial<FeedAsking>): Promise<FeedReader>;
}

export async function openFeedWorld(): Promise<FeedWorld> {
  const stranger = "ghp_of_a_stranger";
  const world = await openWorld({
    fill: ({ world: upstream, tokens }) => {
      generateWorld(upstream, { seed: 7, repositories: 3, issues: 6, pulls: 2 });
      tokens.create({ token: stranger, login: "stranger", repositories: [] });
    },
  });
  const all = repositoriesOf(world.simulator);
  await world.mirror(...all.map(({ fullName }) => fullName));
  const of = async (isPrivate: boolean) => {
    const found = all.find((one) => one.private === isPrivate);
    if (!found) throw new Error("The world needs a public repository and a private one");
    return (await world.get(`/repos/${found.fullName}`)).body as ToldRepository;
  };
  const [open, hidden] = [await of(false), await of(true)];
  const [user] = await world.ctx.db.query<{ id: number }>(sql`select user_id::float8 as id from api_tokens limit 1`);
  const follow = (asking: Partial<FeedAsking> = {}) =>
    FeedReader.open({ url: world.url, token: world.token, ...asking });
  return { world, open, hidden, stranger, userId: user?.id ?? 0, follow };
}

/** Tells of a star, the `made`th. */
export function star(world: TestWorld, made: number, repository: ToldRepository, more: object = {}) {
  return tell(world, { event: "star", payload: { action: "created", number: made, repository, ...more } });
}
