/** How long each view of the operator's page takes with 1, 200 and 1,000 repositories: `npm run proofs page`. */
import { describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { VIEWS } from "../../src/operator/views.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { printFigures } from "../support/figures.ts";
import { openManyRepositories } from "../support/many-repositories.ts";
import type { TestWorld } from "../support/world.ts";

const isWanted = process.env.PAGE === "1";
const OPERATOR = "the-operators-token-of-many";
const ASKED = 40;
/** Rows of each repository. Three in ten of them are deliveries. */
const ROWS = 200;

describe.skipIf(!isWanted)("each view (skipped without PAGE=1)", () => {
  test.each([1, 200, 1_000])("is told soon with %i repositories", { timeout: LONG_TEST_MS }, async (repositories) => {
    const { world } = await openManyRepositories({ repositories, rows: ROWS });
    await using _world = world;
    const id = await fillOthers(world);
    const url = await world.openSibling({ OPERATOR_TOKEN: OPERATOR });
    const signIn = await fetch(`${url}/-/session`, {
      method: "POST",
      redirect: "manual",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: `token=${OPERATOR}`,
    });
    const cookie = (signIn.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const p95: Record<string, number> = {};
    for (const view of Object.keys(VIEWS)) {
      const times: number[] = [];
      for (let n = 0; n < ASKED; n++) {
        const startedAt = performance.now();
        const answer = await fetch(`${url}/-/operator/${view}?target=1&id=${id}`, { headers: { cookie } });
        await answer.arrayBuffer();
        times.push(performance.now() - startedAt);
        expect([view, answer.status]).toEqual([view, 200]);
      }
      p95[view] = Math.round(times.sort((one, other) => one - other)[Math.floor(ASKED * 0.95) - 1] ?? 0);
    }
    printFigures("views", { repositories, ms: Math.max(...Object.values(p95)), p95 });
  });
});

/** What the mirror of many repositories lacks. Answers the id of a delivery that was told and sent on. */
async function fillOthers({ ctx: { db } }: TestWorld): Promise<string> {
  await db.query(sql`
    insert into activity select 1, date_trunc('minute', now()) - n * interval '1 minute', n, n, n, n, n, n, n, n, n, n, n, n
      from generate_series(0, 1500) n`);
  await db.query(sql`
    insert into events (repository_id, guid, id, delivery_id, event, received_at)
      select repository_id, guid, row_number() over (order by id), id, event, received_at from deliveries`);
  await db.query(sql`
    insert into targets (scope, scope_id, made_by, url, content_type, insecure_ssl, events, active, created_at, updated_at)
      select 'everything', 0, 'operator', 'https://ci.example/' || n, 'json', false, '{*}', true, now(), now()
        from generate_series(1, 3) n`);
  await db.query(sql`
    insert into target_deliveries (target_id, guid, event, repository_id, delivery_id, delivered_at, redelivery, duration_ms,
        status, status_code, url, request_headers, response_headers)
      select t.id, d.guid, d.event, d.repository_id, d.id, d.received_at, false, 5, 'OK', 200, t.url, '{}', '{}'
        from targets t cross join deliveries d`);
  await db.query(sql`analyze`);
  const [row] = await db.query<{ id: string }>(sql`select id from deliveries order by id limit 1`);
  return row?.id ?? "";
}
