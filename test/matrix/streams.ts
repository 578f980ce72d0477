import { openStream } from "../api/event-stream.ts";
import { storeAndTell } from "../support/mirrored.ts";
import { accessOf, type Caller } from "./callers.ts";
import type { MatrixWorld } from "./matrix-world.ts";
import { markOf, marksIn, type Place } from "./places.ts";

/** A subscription that a caller asks for. */
export interface Following {
  caller: Caller;
  place: Place;
  field: "issueChanged" | "pullRequestChanged";
}

/** Answers what is wrong with who hears of a change in each place, in words. */
export async function follow(world: MatrixWorld, all: readonly Following[]): Promise<string[]> {
  const { api } = world;
  await using streams = new AsyncDisposableStack();
  const heard: (() => Promise<string | null>)[] = [];
  const faults: string[] = [];
  for (const { caller, place, field } of all) {
    const shown = field === "issueChanged" ? "issue" : "pullRequest";
    const what = `${caller.name}, ${place.name}, ${field}`;
    const access = accessOf(api, caller, place);
    const mayHear = caller.token !== null && (shown === "issue" ? access.issues : access.pulls) !== "none";
    const query = `subscription($id: ID!) { ${field}(repositoryId: $id) { number ${shown} { title } } }`;
    const id = place.targets.issue.nodes.repository;
    const stream = streams.use(await openStream({ url: api.url, token: caller.token ?? "", query, variables: { id } }));
    const isOpen = /event-stream/.test(stream.answer.headers.get("content-type") ?? "");
    if (isOpen !== mayHear) faults.push(`${what}: it is ${isOpen ? "opened" : await stream.answer.text()}`);
    else if (!isOpen) faults.push(...marksIn(await stream.answer.text()).map((mark) => `${what}: it shows ${mark}`));
    else
      heard.push(async () => {
        const mark = markOf(place.name, shown === "issue" ? "case" : "patch");
        const event = await stream.next();
        return event?.data?.[field]?.[shown]?.title.includes(mark) ? null : `${what}: ${JSON.stringify(event)}`;
      });
  }
  for (const place of Object.values(world.places)) await change(world, place);
  const wrong = await Promise.all(heard.map((one) => one()));
  return [...faults, ...wrong.filter((fault) => fault !== null)];
}

/** Tells the mirror that the place's issue and pull request have changed. It is told nothing about a deleted place. */
async function change({ api }: MatrixWorld, { repository, targets, issue, pull }: Place): Promise<void> {
  if (repository.deleted) return;
  const { fullName } = targets.issue;
  const at = { id: repository.id, fullName, htmlUrl: `https://github.com/${fullName}` };
  for (const { number } of [issue, pull]) {
    const { body } = await api.getUpstream(`/repos/${fullName}/issues/${number}`);
    const updated_at = new Date(Date.parse(body.updated_at) + 60_000).toISOString().replace(/\.\d+Z$/, "Z");
    await storeAndTell(api.ctx, api.upstream, "issue", { ...body, title: `${body.title}, changed`, updated_at }, at);
  }
}
