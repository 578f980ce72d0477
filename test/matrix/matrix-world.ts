import { MIRROR_PARTS } from "../../src/config/parts.ts";
import {
  deleteRepository,
  renameRepository,
  setVisibility,
  transferRepository,
} from "../../src/simulator/changes/repositories.ts";
import { endOrPause, pause } from "../../src/sync/following/pause.ts";
import { FOLLOWED, TOLD_DELETED } from "../../src/sync/following/state.ts";
import { type ApiWorld, openApiWorld } from "../api/api-world.ts";
import { mirrorParts, store } from "../support/mirrored.ts";
import { addOwners, addPlace, type Owners, PLACES, type Place, type PlaceName } from "./places.ts";

export interface MatrixWorld extends AsyncDisposable {
  api: ApiWorld;
  owners: Owners;
  places: Readonly<Record<PlaceName, Place>>;
}

const UNLIMITED = 1e9;
/** A share of the mirror's own quota that no caller here spends. Other tests show that the share is bounded. */
const UNSPENT = "100000";

export async function openMatrixWorld(): Promise<MatrixWorld> {
  let owners: Owners | undefined;
  const made: Place[] = [];
  const api = await openApiWorld({
    fill: async (world) => {
      owners = addOwners({ world });
      for (const name of PLACES) made.push(addPlace({ world }, owners, name));
    },
    env: {
      RATE_LIMIT_ANONYMOUS: "0",
      RATE_LIMIT_USER: "0",
      RATE_LIMIT_GRAPHQL: "0",
      RATE_LIMIT_SEARCH_ANONYMOUS: "0",
      RATE_LIMIT_SEARCH_USER: "0",
      STREAMS_PER_CALLER: "1000",
      UPSTREAM_READS: UNSPENT,
      UPSTREAM_READS_PER_CALLER: UNSPENT,
      MIRROR: MIRROR_PARTS.join(),
    },
  });
  if (!owners) throw new Error("The world was not filled");
  const { limits } = api.upstream.quota;
  for (const name of Object.keys(limits)) Object.assign(limits, { [name]: UNLIMITED });
  await mirrorParts(api.ctx);
  // No type can say that there is a place of each name.
  const places = Object.fromEntries(made.map((place) => [place.name, place])) as Record<PlaceName, Place>;
  return { api, owners, places, [Symbol.asyncDispose]: () => api[Symbol.asyncDispose]() };
}

/** Does at upstream what happens to each place, and has the mirror hear of it. */
export async function changeAll({ api, owners, places }: MatrixWorld): Promise<void> {
  const { ctx, upstream } = api;
  const { world } = upstream;
  const by = owners.octo.id;
  setVisibility(world, by, places.closed.repository, "private");
  renameRepository(world, by, places.renamed.repository, "has-a-new-name");
  transferRepository(world, by, places.moved.repository, owners.other);
  for (const { repository, targets } of [places.closed, places.renamed, places.moved]) {
    const fullName = world.fullName(repository);
    for (const target of Object.values(targets)) {
      target.pages = target.pages.map((page) => page.replace(`/${target.fullName}`, `/${fullName}`));
      target.fullName = fullName;
    }
    await store(ctx, upstream, "repository", (await api.getUpstream(`/repos/${fullName}`)).body);
  }
  setVisibility(world, by, places.paused.repository, "private");
  await pause(ctx, [places.paused.repository.id], { from: FOLLOWED, problem: "no token may see it" });
  const { id } = places.gone.repository;
  deleteRepository(world, by, places.gone.repository);
  await pause(ctx, [id], { from: FOLLOWED, problem: TOLD_DELETED });
  await endOrPause(ctx, id, { from: FOLLOWED, problem: "it was not found" });
}
