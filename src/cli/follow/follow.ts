import { codeOf } from "../../failure.ts";
import { Waits } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { type Command, CommandError, type Given, UsageError } from "../terminal/command.ts";
import { MIRROR_URL, mirrorAddress, requiredToken } from "../terminal/mirror-address.ts";
import { type Output, spanOf } from "../terminal/output.ts";
import { readNames } from "../terminal/patterns.ts";
import { connect, type FeedAddress, type Interrupted } from "./connection.ts";
import { endReason, eventLine, type FeedLine } from "./lines.ts";

export const follow: Command = {
  name: "follow",
  takes: "[owner/name…]",
  values: {
    event: { takes: "NAMES", about: "only these events, such as issues,pull_request" },
    action: { takes: "NAMES", about: "only these actions, such as opened,closed" },
    since: { takes: "ID", about: "go on behind this event" },
    ...MIRROR_URL,
  },
  about: `
Follows the feed of events: a line for each, once the mirror shows it. It comes back by itself when
the connection breaks, and goes on where it was. It ends on Ctrl-C, and says from where to go on.

With --json each line is a CloudEvent, and its id is what --since takes.`,
  run: runFollow,
};

async function runFollow({ words, values, env, resources }: Given, output: Output): Promise<number> {
  const feed = await readFeed(words, values, env);
  let since = readSinceId(values);
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.once(name, leave);
    resources.defer(() => void process.off(name, leave));
  }
  // The reader of our output has ended, as in `tain follow | head`.
  const broken = (error: Error) => {
    if (codeOf(error) !== "EPIPE") throw error;
    leave();
  };
  process.stdout.on("error", broken);
  resources.defer(() => void process.stdout.off("error", broken));

  const { signal } = leaving;
  const waits = new Waits({ policy: RETRIES.followedFeed, random: Math.random, signal });
  for (;;) {
    const lines = connect(feed, since, signal);
    const interrupted = await readLines(lines, signal, (line) => {
      waits.reset();
      if (line.kind === "event") printEvent(line, output);
      else if (line.kind === "end") output.note(`tain: ${endReason(line)}`);
      since = line.id;
    });
    if (interrupted === "left") break;
    const { reason, afterMs: askedMs } = interrupted;
    const onWait = (waitMs: number) => {
      if (waits.failures > 1 || askedMs !== null)
        output.note(`tain: ${reason}; trying again in ${spanOf(Math.max(1_000, waitMs))}`);
    };
    if (!(await waits.nextUnlessAborted({ askedMs, onWait }))) break;
  }
  if (since !== null && !output.json) output.note(`tain: --since ${since} goes on from here`);
  return 0;
}

async function readLines(
  lines: AsyncGenerator<FeedLine, Interrupted>,
  leaving: AbortSignal,
  heard: (line: FeedLine) => void,
): Promise<Interrupted | "left"> {
  try {
    for (;;) {
      const { done, value } = await lines.next();
      if (leaving.aborted) return "left";
      if (done) return value;
      heard(value);
    }
  } catch (error) {
    if (leaving.aborted && !(error instanceof CommandError)) return "left";
    throw error;
  }
}

function printEvent(line: FeedLine, output: Output): void {
  output.jsonText(line.text);
  output.line(eventLine(line));
}

/** @throws UsageError, CommandError */
async function readFeed(
  words: readonly string[],
  values: Given["values"],
  env: NodeJS.ProcessEnv,
): Promise<FeedAddress> {
  const query = new URLSearchParams();
  for (const name of words.length > 0 ? readNames(words) : []) query.append("repository", name);
  for (const name of ["event", "action"]) if (values.has(name)) query.append(name, values.get(name) ?? "");
  const address = await mirrorAddress(values, env);
  return { url: address.url, token: requiredToken(address), query };
}

function readSinceId(values: Given["values"]): string | null {
  const since = values.get("since");
  if (since !== undefined && !/^\d{1,15}$/.test(since))
    throw new UsageError(`--since ${since} is no event's id: a number, as --json prints it`);
  return since ?? null;
}
