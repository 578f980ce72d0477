import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { type ResourceKey, resourceOf } from "../../mirror/store/resource.ts";
import { Gather } from "../../operations/gather.ts";
import { GraphqlTooHeavyError, UpstreamRefusedError } from "../../upstream/client/errors.ts";
import { RATE_LIMIT } from "../../upstream/client/graphql.ts";

/** What was said to be deleted, and by which id GraphQL would show it. */
interface Tombstone {
  repositoryId: number;
  nodeId: string;
}

/** GitHub docs: `nodes` takes a hundred ids, and is a point for however many. */
const IDS_A_QUERY = 100;
const DOCUMENT = `query($ids: [ID!]!) { ${RATE_LIMIT} nodes(ids: $ids) { __typename } }`;

/**
 * Asks upstream whether what webhooks said to be deleted is gone, for all that is asked at one time together. What GraphQL
 * shows, or says nothing certain of, has to be read by REST.
 */
export class GoneNodes {
  readonly #ctx: Pick<Context, "db" | "upstream">;
  readonly #gather: Gather<Tombstone, boolean>;

  constructor(ctx: Pick<Context, "db" | "upstream">) {
    this.#ctx = ctx;
    this.#gather = new Gather((tombstones) => findGone(ctx, tombstones), { patienceMs: null });
  }

  /** False also where nothing said that it was deleted. */
  async isGone(wanted: ResourceKey): Promise<boolean> {
    const nodeId = await nodeIdOfDeleted(this.#ctx, wanted);
    return nodeId !== null && (await this.#gather.ask({ repositoryId: wanted.repositoryId, nodeId }));
  }
}

/** Null if the mirror shows it, or does not know its id. What people and repositories are is asked of REST alone. */
async function nodeIdOfDeleted(
  { db }: Pick<Context, "db">,
  { kind, repositoryId, key }: ResourceKey,
): Promise<string | null> {
  if (repositoryId === 0) return null;
  const { table, keyColumn } = resourceOf(kind);
  const [row] = await db.query<{ node_id: string | null }>(sql`
    select node_id from ${sql.identifier(table.name)}
      where repository_id = ${repositoryId} and ${sql.identifier(keyColumn)} = ${key} and deleted_at is not null`);
  return row?.node_id ?? null;
}

async function findGone({ upstream }: Pick<Context, "upstream">, asked: readonly Tombstone[]): Promise<boolean[]> {
  const gone = new Set<string>();
  const groups = await upstream.groups([...new Set(asked.map(({ repositoryId }) => repositoryId))]);
  for (const ids of groups) {
    const own = asked.filter(({ repositoryId }) => ids.includes(repositoryId));
    for (let start = 0; start < own.length; start += IDS_A_QUERY)
      for (const nodeId of await readGone({ upstream }, own.slice(start, start + IDS_A_QUERY))) gone.add(nodeId);
  }
  return asked.map(({ nodeId }) => gone.has(nodeId));
}

/** Answers the ids that upstream knows nothing of. */
async function readGone({ upstream }: Pick<Context, "upstream">, some: readonly Tombstone[]): Promise<string[]> {
  const ids = some.map(({ nodeId }) => nodeId);
  try {
    const { data, errors } = await upstream.graphql<{ nodes: (object | null)[] | null }>(
      DOCUMENT,
      { ids },
      { priority: "refresh", ...(some[0] ? { repository: some[0].repositoryId } : {}) },
    );
    // A null without this error may mean that we may not see it.
    const unknown = new Set(
      errors.flatMap(({ type, path }) => (type === "NOT_FOUND" && path[0] === "nodes" ? [path[1]] : [])),
    );
    return ids.filter((_, at) => data.nodes?.[at] === null && unknown.has(at));
  } catch (error) {
    // GraphQL is off, too slow or forbidden here: REST tells.
    if (error instanceof UpstreamRefusedError || error instanceof GraphqlTooHeavyError) return [];
    throw error;
  }
}
