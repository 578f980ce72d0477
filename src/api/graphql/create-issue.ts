import type { Fields, Json } from "../../mirror/template.ts";
import { mayWrite } from "../caller.ts";
import { ApiFault } from "../fault.ts";
import { passOn, store } from "../rest/writes.ts";
import type { GraphqlCall, Node } from "./call.ts";
import { typedError } from "./errors.ts";
import { nodeOf } from "./lookups.ts";

interface CreateIssueInput {
  repositoryId: string;
  title: string;
  body?: string | null;
  assigneeIds?: string[] | null;
  milestoneId?: string | null;
  labelIds?: string[] | null;
  clientMutationId?: string | null;
}

/** Creates the issue at upstream by REST, once, and shows it from the mirror. */
export async function createIssue(
  _root: unknown,
  { input }: { input: CreateIssueInput },
  call: GraphqlCall,
): Promise<unknown> {
  const repository = await typed(call, input.repositoryId, "Repository");
  if (!mayWrite(call.caller, repository.repositoryId))
    throw typedError("FORBIDDEN", "Resource not accessible by personal access token");
  const [assignees, labels, milestone] = await Promise.all([
    Promise.all((input.assigneeIds ?? []).map((id) => typed(call, id, "User"))),
    Promise.all((input.labelIds ?? []).map((id) => typed(call, id, "Label"))),
    input.milestoneId == null ? null : typed(call, input.milestoneId, "Milestone"),
  ]);
  const wanted: Fields = { title: input.title };
  if (input.body != null) wanted.body = input.body;
  if (assignees.length > 0) wanted.assignees = assignees.map(({ rest }) => rest.login as string);
  if (labels.length > 0) wanted.labels = labels.map(({ rest }) => rest.name as string);
  if (milestone) wanted.milestone = milestone.rest.number as number;
  return { clientMutationId: input.clientMutationId ?? null, issue: await create(call, repository, wanted) };
}

async function typed(call: GraphqlCall, id: string, kind: Node["kind"]): Promise<Node> {
  const node = await nodeOf(call, id);
  if (node.kind === kind) return node;
  throw typedError("NOT_FOUND", `Could not resolve to ${kind} node with the global id of '${id}'.`);
}

async function create(call: GraphqlCall, { repositoryId, rest }: Node, wanted: Fields): Promise<Node> {
  const fullName = String(rest.full_name);
  const answer = await send(call, `/repos/${fullName}/issues`, wanted);
  if (answer.status < 200 || answer.status > 299) throw refusal(answer.status, answer.body);
  const repository = { id: repositoryId, fullName, htmlUrl: typeof rest.html_url === "string" ? rest.html_url : null };
  try {
    const number = await store(call.ctx, "issue", { repository }, answer);
    const issue = await call.numbered("Issue", repositoryId, number);
    if (issue) return issue;
  } catch (error) {
    // It exists. To answer with an error would make the caller create it twice.
    call.ctx.log.error(
      { err: error, requestId: call.requestId, repository: fullName },
      "A write took effect at upstream and could not be stored",
    );
  }
  return { kind: "Issue", repositoryId, rest: JSON.parse(answer.body) as Fields };
}

async function send(call: GraphqlCall, path: string, wanted: Fields) {
  try {
    return await passOn({ ...call.ctx, caller: call.caller }, path, JSON.stringify(wanted));
  } catch (error) {
    if (error instanceof ApiFault) throw typedError("SERVICE_UNAVAILABLE", error.message);
    throw error;
  }
}

/** Upstream's refusal in GraphQL's form. */
function refusal(status: number, body: string): Error {
  const { message, errors } = parsed(body);
  const details = Array.isArray(errors) ? errors.flatMap((one) => detail(one)) : [];
  const text = [message, ...details].join(": ");
  if (status === 404) return typedError("NOT_FOUND", text);
  if (status === 403) return typedError("FORBIDDEN", text);
  return typedError(status >= 500 ? "SERVICE_UNAVAILABLE" : "UNPROCESSABLE", text);
}

function detail(one: Json): string[] {
  if (typeof one === "string") return [one];
  if (typeof one !== "object" || one === null || Array.isArray(one)) return [];
  return [typeof one.message === "string" ? one.message : `${one.field} is ${String(one.code).replaceAll("_", " ")}`];
}

function parsed(body: string): { message: string; errors?: Json } {
  try {
    const { message, errors = null } = JSON.parse(body) as Fields;
    return { message: typeof message === "string" ? message : "Upstream refused", errors };
  } catch (error) {
    if (error instanceof SyntaxError) return { message: "Upstream refused, and not in JSON" };
    throw error;
  }
}
