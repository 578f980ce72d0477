/** One row that cannot be shown fails no list: it is left out, named once, and counted. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { LeftOut } from "../../src/mirror/render/left-out.ts";
import { renderDocuments, renderList } from "../../src/mirror/render/rendering.ts";
import { SharedRows } from "../../src/mirror/render/shared-rows.ts";
import { Unfolding } from "../../src/mirror/render/unfolding.ts";
import { Pace } from "../../src/work/pace.ts";
import { openMirror, type TestMirror } from "../support/mirror.ts";

let mirror: TestMirror;
beforeAll(async () => {
  mirror = await openMirror();
});
afterAll(() => mirror[Symbol.asyncDispose]());

const row = (id: number, more = "1") => ({
  repositoryId: 7,
  document: `{"id":${id},"node_id":"I_${id}","title":"one","base":${more},"unknown":1}`,
});
/** As an earlier version stored it. */
const deep = row(2, `${'{"base":'.repeat(20_000)}1${"}".repeat(20_000)}`);
const AUDIENCE = { api: "https://mirror.test", accessLevel: () => "stranger" as const };
const SHOWN = [1, 3].map((id) => ({ id, node_id: `I_${id}`, title: "one", base: 1 }));

test("REST's lists leave it out, and GraphQL has a node that it cannot show in its place", async () => {
  const { db, log, metrics } = mirror.ctx;
  const shared = new SharedRows(db, { leftOut: new LeftOut({ log, metrics }) });
  const rows = [row(1), deep, row(3)];
  const texts = await renderDocuments(shared, rows, AUDIENCE);
  expect(texts.map((text) => text && JSON.parse(text))).toEqual([SHOWN[0], null, SHOWN[1]]);
  expect(JSON.parse(String(await renderList(shared, rows, AUDIENCE)))).toEqual(SHOWN);
  expect(JSON.parse(String(await renderList(shared, [deep, row(3)], AUDIENCE)))).toEqual([SHOWN[1]]);
  expect(JSON.parse(String(await renderList(shared, [deep], AUDIENCE)))).toEqual([]);
  const unfolded = await new Unfolding(shared, AUDIENCE, new Pace(0)).unfold(rows);
  expect(unfolded.map(({ id }) => id)).toEqual([1, undefined, 3]);
  expect(await metrics.text()).toMatch(/tain_left_out_total\{what="row"\} [4-9]/);
});

test("without a place for what is left out, it fails what shows it", async () => {
  await expect(renderDocuments(new SharedRows(mirror.ctx.db), [deep], AUDIENCE)).rejects.toThrow(RangeError);
});
