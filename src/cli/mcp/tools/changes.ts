import { z } from "zod";
import type { Fields } from "../../../json.ts";
import { endReason } from "../../follow/lines.ts";
import { repository, textBound } from "./inputs.ts";
import { Texts } from "./texts.ts";
import { type Tool, tool } from "./tool.ts";
import { changeView } from "./views.ts";

/** Events that are there already follow each other at once. After such a silence, the rest is for the next call. */
const SILENCE_MS = 500;

const name = z.string().regex(/^[a-z_]{1,60}$/);

const listChanges = tool({
  name: "list_changes",
  title: "List what has happened since",
  description:
    "Lists what happened in mirrored repositories, in order: issues, comments, pull requests, reviews, labels. Call it without `since` to learn where the present is. Then call it with the last answer's next_since: nothing is missed or repeated. With wait_seconds it waits for the next event, which costs less than asking lists again and again.",
  input: z.strictObject({
    since: z
      .string()
      .regex(/^\d{1,15}$/)
      .optional()
      .describe("next_since of the answer before"),
    repositories: z.array(repository).max(20).optional().describe("default: all that the token may see"),
    events: z.array(name).max(50).optional().describe("only these, such as issues, issue_comment, pull_request"),
    actions: z.array(name).max(50).optional().describe("only these, such as opened, closed, created"),
    limit: z.int().min(1).max(200).default(50),
    wait_seconds: z.int().min(1).max(50).default(1),
    ...textBound,
  }),
  isWaiting: true,
  async run(call, { since, repositories, events, actions, limit, wait_seconds, max_text }) {
    const texts = new Texts(max_text);
    const enough = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const within = (ms: number) => {
      clearTimeout(timer);
      timer = setTimeout(() => enough.abort(), ms);
    };
    const changes: Fields[] = [];
    const more: string[] = [];
    let place = since ?? null;
    try {
      const of = { part: "changes", what: "these repositories" };
      const asked = { since, repository: repositories, event: events, action: actions };
      for await (const line of call.lines(of, asked, enough.signal)) {
        // The first line says that the feed has begun, and where.
        if (timer === undefined) within(wait_seconds * 1_000);
        place = line.id;
        if (line.kind === "end") more.push(endReason(line));
        if (line.kind === "end" || (line.kind === "bookmark" && since === undefined)) break;
        if (line.kind === "bookmark") continue;
        changes.push(changeView(line.fields, texts));
        if (changes.length === limit) break;
        within(SILENCE_MS);
      }
    } finally {
      clearTimeout(timer);
    }
    if (changes.length === limit) more.push(`There may be more: ask with since=${place}`);
    return { fields: { changes, next_since: place }, more: [...texts.more, ...more] };
  },
});

export const CHANGE_TOOLS: readonly Tool[] = [listChanges];
