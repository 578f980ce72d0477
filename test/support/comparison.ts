import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import type { Fields, Json } from "../../src/json.ts";
import type { Kind } from "../../src/kinds/contract/kind.ts";
import { resourceOf } from "../../src/kinds/registry.ts";
import { renderDocuments } from "../../src/mirror/render/rendering.ts";
import { SharedRows } from "../../src/mirror/render/shared-rows.ts";
import { sameValue } from "../../src/mirror/store/merge-rule.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";

type Truth = Record<
  "labels" | "milestones" | "issues" | "pulls" | "comments" | "reviews" | "review_comments",
  Fields[]
> & { repository: Fields };

const collections = [
  ["labels", "label"],
  ["milestones", "milestone"],
  ["issues", "issue"],
  ["pulls", "pull_request"],
  ["comments", "issue_comment"],
  ["reviews", "review"],
  ["review_comments", "review_comment"],
] as const satisfies [keyof Truth, Kind][];

export interface Comparison {
  /** How many resources upstream has, by kind. */
  counts: Record<string, number>;
  /** What differs, as `kind key path: mirror ≠ upstream`; at most a hundred lines. */
  differences: string[];
}

/**
 * The upstream that a mirror is compared with. `stateOf` is for an upstream that is on no loopback address, and so does
 * not tell its state over HTTP.
 */
export type ComparedUpstream = Pick<Simulator, "url"> & {
  stateOf?: (fullName: string, url: string) => string | Promise<string>;
};

async function askedState(fullName: string, url: string): Promise<string> {
  return await (await fetch(`${url}/-/state?repository=${fullName}`)).text();
}

/** Compares everything the mirror holds of a repository with upstream's whole truth, field by field. */
export async function compare(
  ctx: Context,
  simulator: ComparedUpstream,
  fullName: string,
  ignore: (kind: Kind, path: string, mine: Json | undefined) => boolean = () => false,
): Promise<Comparison> {
  const { repositories } = JSON.parse(await (simulator.stateOf ?? askedState)(fullName, simulator.url)) as {
    repositories: Truth[];
  };
  const truth = repositories[0];
  if (!truth) throw new Error(`Upstream has no ${fullName}`);
  const counts: Record<string, number> = {};
  const differences: string[] = [];
  const note = (kind: Kind, key: unknown, mine: Json | undefined, theirs: Json | undefined) => {
    for (const path of differing(mine, theirs)) {
      if (differences.length < 100 && !ignore(kind, path.path, path.mine))
        differences.push(`${kind} ${String(key)} ${path.path}: ${short(path.mine)} ≠ ${short(path.theirs)}`);
    }
  };

  const id = truth.repository.id as number;
  const [own] = await mirrored(ctx, "repository", id, simulator.url);
  note("repository", id, own, truth.repository);
  for (const [name, kind] of collections) {
    const keyName = kind === "issue" || kind === "pull_request" ? "number" : "id";
    const mine = new Map((await mirrored(ctx, kind, id, simulator.url)).map((one) => [one[keyName], one]));
    counts[name] = truth[name].length;
    for (const theirs of truth[name]) {
      note(kind, theirs[keyName], mine.get(theirs[keyName] as number), theirs);
      mine.delete(theirs[keyName] as number);
    }
    for (const key of mine.keys()) note(kind, key, mine.get(key), undefined);
  }
  return { counts, differences };
}

/** Everything of one kind that the mirror holds, as the mirror serves it. */
async function mirrored(ctx: Context, kind: Kind, repositoryId: number, api: string): Promise<Fields[]> {
  const resource = resourceOf(kind);
  const isSelf = kind === "repository";
  const detail = resource.detailKeys.size > 0 && kind !== "review" ? sql`detail::text` : sql`null`;
  const served = kind === "issue" || kind === "pull_request" ? sql`id is not null` : sql`true`;
  const rows = await ctx.db.query<{ document: string; detail: string | null; body: string | null }>(sql`
    select document::text, ${detail} as detail, ${resource.hasBody ? sql`body` : sql`null`} as body
      from ${resource.table}
      where ${isSelf ? sql`id` : sql`repository_id`} = ${repositoryId} and deleted_at is null and ${served}`);
  const texts = await renderDocuments(
    new SharedRows(ctx.db),
    rows.map((row) => ({ ...row, repositoryId })),
    { api },
  );
  return texts.map((text) => JSON.parse(text ?? "") as Fields);
}

interface Difference {
  path: string;
  mine: Json | undefined;
  theirs: Json | undefined;
}

function differing(mine: Json | undefined, theirs: Json | undefined, path = ""): Difference[] {
  if (sameValue(mine, theirs)) return [];
  const bothObjects = [mine, theirs].every((value) => typeof value === "object" && value !== null);
  if (!bothObjects) return [{ path: path || "(whole)", mine, theirs }];
  const [left, right] = [mine as Fields, theirs as Fields];
  return [...new Set([...Object.keys(left), ...Object.keys(right)])].flatMap((key) =>
    differing(left[key], right[key], path ? `${path}.${key}` : key),
  );
}

function short(value: Json | undefined): string {
  return (JSON.stringify(value) ?? "nothing").slice(0, 80);
}
