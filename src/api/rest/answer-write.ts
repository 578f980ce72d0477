import { levelOf } from "../../failure.ts";
import { type Fields, type Json, objectOf } from "../../json.ts";
import type { Right } from "../../kinds/contract/rights.ts";
import { findParentNumber } from "../../mirror/read/comments.ts";
import { isMirroredIssue, isMirroredPull } from "../../mirror/read/pulls.ts";
import { UnsafePathError } from "../../upstream/protocol/paths.ts";
import type { RawAnswer } from "../../upstream/protocol/upstream.ts";
import type { Answer, RepositoryCall } from "../call/call.ts";
import { requireWriter } from "../callers/permissions.ts";
import { ApiFault } from "../dialect/fault.ts";
import { jsonIn, objectIn } from "../dialect/sent.ts";
import { isSuccess, type Performed, perform, type Write } from "../writes/write.ts";
import { numberParam, smallNumberParam } from "./page.ts";

// GitHub was seen to send these headers with POST and PATCH of issues under 2022-11-28. The next version drops
// `assignee`.
const DEPRECATION = { Deprecation: "Tue, 10 Mar 2026 00:00:00 GMT", Sunset: "Fri, 10 Mar 2028 00:00:00 GMT" };
const DEPRECATION_LINK =
  '<https://docs.github.com/en/rest/about-the-rest-api/api-versions>; rel="deprecation"; type="text/html"';

/** A write: how it is asked for, and how its success is shown. */
export interface WriteOperation {
  /** The forms that the body may have. The default is a JSON object. */
  takes?: "object" | "object or list" | "object or nothing" | "nothing";
  /** Makes the write. `body` is as the caller sent it. */
  write: (call: RepositoryCall, body: string) => Promise<Write> | Write;
  /** The read that shows what was written. Without such a read, upstream's answer is shown as it is. */
  shows?: { as: (call: RepositoryCall) => Promise<Answer>; by: (written: Fields) => Record<string, Json | undefined> };
  isDeprecated?: true;
}

/** Answers the write once the mirror shows what upstream did. */
export async function answerWrite(
  call: RepositoryCall,
  operation: WriteOperation & { route: string },
): Promise<Answer> {
  const { route } = operation;
  const caller = await requireWriter(call, () => subjectsRight(call, route));
  const write = await operation.write(call, checkedBody(call.body, operation.takes ?? "object"));
  const performed = await perform({ ...call, caller, route }, write).catch((error: unknown) => {
    if (!(error instanceof UnsafePathError)) throw error;
    throw new ApiFault(422, "This mirror does not send such a path to the service, since it could lead elsewhere.");
  });
  const answer = await writeAnswer(call, operation, performed);
  return operation.isDeprecated && call.version === "2022-11-28" && isSuccess(answer)
    ? { ...answer, headers: { ...answer.headers, ...DEPRECATION }, link: DEPRECATION_LINK }
    : answer;
}

/** The right that the path's issue or pull request takes. Null: it is not mirrored. */
async function subjectsRight({ ctx, repository, params }: RepositoryCall, route: string): Promise<Right | null> {
  const below = route.replace("/repos/{owner}/{repo}", "");
  // Labels and milestones belong to issues and to pull requests.
  if (!below.startsWith("/issues/")) return "issues or pulls";
  const id = numberParam(params.id);
  const number = below.startsWith("/issues/comments/")
    ? id && (await findParentNumber(ctx.db, "issue_comment", repository.id, id))
    : smallNumberParam(params.number);
  if (number === null) return null;
  if (await isMirroredPull(ctx.db, repository.id, number)) return "pulls";
  return (await isMirroredIssue(ctx.db, repository.id, number)) ? "issues" : null;
}

/** The body as it was sent. @throws ApiFault 400 */
function checkedBody(body: string, takes: NonNullable<WriteOperation["takes"]>): string {
  if (takes === "nothing") return "";
  if (body === "" && takes === "object or nothing") return body;
  if (takes !== "object or list" || !Array.isArray(jsonIn(body))) objectIn(body);
  return body;
}

/** Shows a success from the mirror, which then answers the next read alike. A refusal is shown as it is. */
async function writeAnswer(
  call: RepositoryCall,
  { shows }: WriteOperation,
  { answer, isStored }: Performed,
): Promise<Answer> {
  if (!isSuccess(answer)) return asItIs(call, answer);
  const location = [answer.headers.location].flat()[0];
  const headers = location === undefined ? {} : { Location: rebase(location, call) };
  const read = isStored && shows ? await shownAfterWrite(call, shows, answer) : null;
  if (read) return { status: answer.status, body: read.body, headers };
  const { contentType: _, ...plain } = asItIs(call, answer);
  return { ...plain, headers };
}

/**
 * The written resource, read from the mirror. Null: the mirror does not show it to the caller, such as a pending
 * review, or cannot now. The write took effect all the same.
 */
async function shownAfterWrite(
  call: RepositoryCall,
  { as, by }: NonNullable<WriteOperation["shows"]>,
  answer: RawAnswer,
): Promise<Answer | null> {
  const params = Object.entries(by(objectOf(JSON.parse(answer.body)))).map(([name, value]) => [name, String(value)]);
  try {
    return await as({ ...call, query: new URLSearchParams(), params: Object.fromEntries(params) });
  } catch (error) {
    const isHidden = error instanceof ApiFault && [403, 404, 410].includes(error.status);
    if (!isHidden)
      call.ctx.log[levelOf(error, "warn")](
        { err: error, requestId: call.requestId },
        "A written resource could not be read back",
      );
    return null;
  }
}

/** Upstream's own answer. Only its API addresses are changed, to the caller's. */
function asItIs(call: RepositoryCall, { status, headers, body }: RawAnswer): Answer {
  const contentType = [headers["content-type"]].flat()[0];
  const kept: Record<string, string> = {};
  for (const name of ["Retry-After", "Location", "X-Accepted-GitHub-Permissions", "X-GitHub-SSO"]) {
    const [value] = [headers[name.toLowerCase()]].flat();
    if (value !== undefined) kept[name] = rebase(value, call);
  }
  const text = body === "" ? null : rebase(body, call);
  return { status, body: text, headers: kept, ...(contentType === undefined ? {} : { contentType }) };
}

function rebase(text: string, { api, ctx }: RepositoryCall): string {
  return text.replaceAll(`${ctx.config.upstreamUrl}/`, `${api}/`);
}
