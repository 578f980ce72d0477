import { createHmac, randomUUID } from "node:crypto";
import examples from "@octokit/webhooks-examples" with { type: "json" };
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Fields } from "../../src/json.ts";
import type { Kind } from "../../src/kinds/contract/kind.ts";
import { resourceOf } from "../../src/kinds/registry.ts";
import { renderDocuments } from "../../src/mirror/render/rendering.ts";
import { SharedRows } from "../../src/mirror/render/shared-rows.ts";
import { until } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

/** GitHub's own example payloads, delivered signed. */
const GITHUB = "https://api.github.com";
/** What each event is about, by the key of its payload. */
const subjects: Record<string, Partial<Record<string, Kind>>> = {
  issues: { issue: "issue" },
  pull_request: { pull_request: "pull_request" },
  label: { label: "label" },
  milestone: { milestone: "milestone" },
  issue_comment: { issue: "issue", comment: "issue_comment" },
  pull_request_review: { pull_request: "pull_request", review: "review" },
  pull_request_review_comment: { pull_request: "pull_request", comment: "review_comment" },
  repository: {},
  public: {},
  check_run: { check_run: "check_run" },
  check_suite: {},
  status: {},
  workflow_job: { workflow_job: "workflow_job" },
  workflow_run: { workflow: "workflow", workflow_run: "workflow_run" },
  push: {},
  release: { release: "release" },
  deployment: { deployment: "deployment" },
  deployment_status: { deployment: "deployment", deployment_status: "deployment_status" },
  create: {},
  delete: {},
  pull_request_review_thread: {},
  member: {},
  team: {},
  team_add: {},
};
/** Their repositories have keys of their own. */
const WITHOUT_REPOSITORY = ["push"];

/** What an example may write. Not truncated: that makes the files of each table and its indexes anew. */
const TABLES = [
  ...["users", "repositories", "labels", "milestones", "issues", "issue_labels", "issue_assignees", "pull_requests"],
  ...["issue_comments", "pull_request_reviews", "pull_request_review_comments", "check_runs", "check_suites"],
  ...["commit_statuses", "releases", "release_lists", "deployments", "deployment_lists", "deployment_statuses"],
  ...["deployment_status_lists", "workflows", "workflow_runs", "workflow_run_lists", "workflow_jobs"],
  ...["workflow_job_lists", "refs", "ref_lists", "refresh_marks", "repository_syncs"],
];

interface Example {
  event: string;
  index: number;
  payload: Fields;
}

const all = (examples as unknown as { name: string; examples: Fields[] }[]).flatMap(({ name, examples: payloads }) =>
  payloads.map((payload, index): Example => ({ event: name, index, payload })),
);
const isFollowed = ({ event, payload }: Example) => event in subjects && "repository" in payload;
const followed = all.filter(isFollowed);
const others = all.filter((one) => !isFollowed(one));

describe("GitHub's example payloads", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await openWorld();
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });

  test.each(followed)("$event #$index is accepted and mirrored field by field", async ({ event, payload }) => {
    const sent = JSON.parse(JSON.stringify(payload).replaceAll(GITHUB, world.simulator.url)) as Fields;
    const repository = sent.repository as Fields;
    await world.ctx.db.query(sql.script(TABLES.map((table) => `delete from ${table}`).join(";")));
    await world.ctx.db.query(sql`
      insert into repository_syncs (repository_id, state, added_at, mirrors)
        values (${repository.id as number}, 'live', now(), '{actions,checks,deployments,people,releases,refs,threads}')`);
    expect(await deliver(world, event, sent)).toEqual({ status: "applied", reason: null });

    if (!WITHOUT_REPOSITORY.includes(event))
      expect(await mirrored(world, "repository", repository)).toMatchObject(repository);
    for (const [key, kind] of Object.entries(subjects[event] ?? {})) {
      const subject = sent[key] as Fields;
      // REST spells the state of a review in capitals, webhooks in small letters, and no text as "", webhooks as null.
      const inReads: Partial<Record<Kind, Fields>> = {
        review: { state: String(subject.state).toUpperCase(), body: subject.body ?? "" },
        // Nobody has closed what was just opened and not transferred, which reads say and payloads leave out.
        ...(event === "issues" && sent.action === "opened" && { issue: { closed_by: null } }),
        // REST shows no more of its suite. Some examples give one account two global ids.
        check_run: {
          check_suite: { id: idOf(subject.check_suite) },
          app: expect.objectContaining({ id: idOf(subject.app) }),
        },
      };
      const expected = { ...subject, ...inReads[kind as Kind] };
      expect(await mirrored(world, kind as Kind, subject)).toEqual(expected);
    }
  });

  test.each(others)("$event #$index is accepted and recorded as ignored", async ({ event, payload }) => {
    expect(await deliver(world, event, payload)).toMatchObject({
      status: "ignored",
      reason: expect.stringContaining(event),
    });
  });
});

function idOf(value: Fields[string] | undefined): number {
  return (value as { id: number } | undefined)?.id ?? 0;
}

async function deliver({ ctx, url }: TestWorld, event: string, payload: Fields): Promise<unknown> {
  const body = JSON.stringify(payload);
  const guid = randomUUID();
  const response = await fetch(`${url}/webhooks`, {
    method: "POST",
    body,
    headers: {
      "content-type": "application/json",
      "x-github-event": event,
      "x-github-delivery": guid,
      "x-github-hook-id": "1",
      "x-hub-signature-256": `sha256=${createHmac("sha256", ctx.config.webhookSecrets[0] as string)
        .update(body)
        .digest("hex")}`,
    },
  });
  expect(response.status).toBe(202);
  let row: { status: string; reason: string | null } | undefined;
  await until("the delivery is settled", async () => {
    const rows = await ctx.db.query<{ status: string; reason: string | null }>(sql`
      select status, reason from deliveries where guid = ${guid}`);
    row = rows[0];
    return row !== undefined && row.status !== "pending";
  });
  return row;
}

/** The stored resource as it is served, tombstones included. */
async function mirrored({ ctx, simulator }: TestWorld, kind: Kind, subject: Fields): Promise<Fields> {
  const resource = resourceOf(kind);
  const key = resource.keyColumn;
  const rows = await ctx.db.query<{
    r: string;
    document: string;
    detail: string | null;
    body: string | null;
  }>(sql`
    select ${"repository_id" in resource.columnTypes ? sql`repository_id` : sql`id`}::text as r, document::text,
        ${resource.detailKeys.size > 0 ? sql`detail::text` : sql`null`} as detail,
        ${resource.hasBody ? sql`body` : sql`null`} as body
      from ${resource.table} where ${sql.identifier(key)} = ${subject[key] as number}`);
  expect(rows).toHaveLength(1);
  const [text] = await renderDocuments(
    new SharedRows(ctx.db),
    rows.map((row) => ({ ...row, repositoryId: Number(row.r) })),
    { api: simulator.url },
  );
  return JSON.parse(text as string) as Fields;
}
