import type { Context } from "../../context.ts";
import { LastHour, sumsOfLastHour } from "../../operations/last-hour.ts";
import { callerNames } from "./spenders.ts";

const SPARED_SUMS = "callers-asked";

/**
 * Where an answer comes from. "mirror": rows of the mirror. "kept": an answer that was kept and still stands.
 * "forwarded": upstream, which was asked for the caller. "cache": an answer of upstream's that was kept.
 */
export type Source = "mirror" | "kept" | "forwarded" | "cache";

/** What a caller's answer came from, and what upstream would have charged for it and has not. */
export interface Served {
  /** The name of the caller's quota. */
  caller: string;
  bucket: "requests" | "points";
  source: Source;
  /** The spared requests, or points of GraphQL. */
  spared: number;
}

/**
 * What a caller asked within the last hour, where the answers came from, and how much upstream quota that spared them.
 */
export interface Asked {
  caller: string;
  /** The caller's name: `octocat`, or `token 1a2b… of octocat`. */
  who: string;
  asked: number;
  answers: Record<Source, number>;
  spared: Record<Served["bucket"], number>;
}

/** Notes for all processes what callers are spared. */
export class Sparing {
  readonly #sums: LastHour;

  constructor(ctx: Pick<Context, "redis" | "config" | "clock" | "log">) {
    this.#sums = new LastHour(ctx, SPARED_SUMS);
  }

  /** @param times how many such answers there were */
  note({ caller, bucket, source, spared }: Served, times: number): void {
    this.#sums.note([caller, "answers", source], times);
    if (spared > 0) this.#sums.note([caller, "spared", bucket], spared * times);
  }

  flush(): Promise<void> {
    return this.#sums.flush();
  }
}

/** What callers asked within the last hour, the most spared first. Null: Redis does not answer, so it is not known. */
export async function askedLately(
  ctx: Pick<Context, "config" | "db" | "redis" | "clock">,
  limit: number,
): Promise<Asked[] | null> {
  const sums = await sumsOfLastHour(ctx, SPARED_SUMS);
  if (!sums) return null;
  const all = [...Map.groupBy(sums, ({ words: [caller = ""] }) => caller)].map(([caller, theirs]) => {
    const sumOf = (what: string, of: string) =>
      theirs.find(({ words }) => words[1] === what && words[2] === of)?.sum ?? 0;
    const answers = {
      mirror: sumOf("answers", "mirror"),
      kept: sumOf("answers", "kept"),
      cache: sumOf("answers", "cache"),
      forwarded: sumOf("answers", "forwarded"),
    };
    const asked = answers.mirror + answers.kept + answers.cache + answers.forwarded;
    return {
      caller,
      asked,
      answers,
      spared: { requests: sumOf("spared", "requests"), points: sumOf("spared", "points") },
    };
  });
  const most = all.sort((one, other) => weightOf(other) - weightOf(one)).slice(0, limit);
  const names = await callerNames(
    ctx,
    most.map(({ caller }) => caller),
  );
  return most.map((each) => ({ ...each, who: names.get(each.caller) ?? each.caller }));
}

function weightOf({ asked, spared }: Pick<Asked, "asked" | "spared">): number {
  return spared.requests + spared.points + asked / 1e9;
}
