import { type Fields, type Json, objectOf, rowsOf, textOf } from "../../../json.ts";
import type { Right } from "../../../kinds/contract/rights.ts";
import { UpstreamRefusedError } from "../../../upstream/protocol/errors.ts";
import { graphqlAnswer, parseGraphql } from "../../../upstream/protocol/graphql.ts";
import type { Received } from "../../../upstream/protocol/transport.ts";
import type { GraphqlAnswer } from "../../../upstream/protocol/upstream.ts";
import { mayWrite, notAccessible } from "../../callers/permissions.ts";
import { ShareSpentFault } from "../../callers/upstream-for-callers.ts";
import { ApiFault } from "../../dialect/fault.ts";
import { beginRecord, type WriteRecord } from "../../record/write-record.ts";
import { known, OutcomeUnknownFault, requireFollowed, type Writer } from "../../writes/send-once.ts";
import { isSuccess, markForRefresh, perform, storeWrite, type Write } from "../../writes/write.ts";
import type { GraphqlCall } from "../call/call.ts";
import type { Node } from "../call/node.ts";
import { typedError, upstreamsError } from "../run/errors.ts";

/** The outcome of a write. `answer` is upstream's own, or null if empty. `isStored`: the mirror shows the change. */
export interface Done {
  answer: Json;
  isStored: boolean;
}

/** The writer, if they have this right in the repository. @throws GraphQLError FORBIDDEN */
export function writerOf(call: GraphqlCall, { repositoryId, rest }: Node, right: Right): Writer {
  if (!mayWrite(call.caller, repositoryId, right)) throw typedError("FORBIDDEN", notAccessible(call.caller));
  const htmlUrl = typeof rest.html_url === "string" ? rest.html_url : null;
  const repository = { id: repositoryId, fullName: String(rest.full_name), htmlUrl };
  return call.asWriter(repository);
}

/**
 * Sends a write by REST. @throws GraphQLError with upstream's refusal, or with what is known if upstream gave no answer
 */
export async function performed(call: GraphqlCall, writer: Writer, write: Write): Promise<Done> {
  const { answer, isStored } = await inOurWords(() => perform(writer, write));
  call.forget();
  if (!isSuccess(answer)) throw upstreamRefusal(answer.status, answer.body);
  const shown: Json = answer.body === "" ? null : JSON.parse(answer.body);
  return { answer: shown, isStored };
}

/**
 * Sends as a mutation what REST cannot express. `path` is the subject's path in REST. `write.says` gets the mutation's
 * payload.
 * @throws GraphQLError as `performed` does
 */
export async function mutated(
  call: GraphqlCall,
  writer: Writer,
  mutation: { document: string; input: Fields; path: string },
  write: Pick<Write, "about" | "reads" | "says">,
): Promise<Done> {
  const { path } = mutation;
  const { route, repository } = writer;
  await inOurWords(() => requireFollowed(writer));
  const record = await beginRecord(writer, { method: "POST", route, path, repositoryId: repository.id });
  const sentAt = writer.ctx.clock.now();
  const answer = await inOurWords(() => sendMutation(writer, mutation, write, record));
  call.forget();
  const [error] = answer.errors;
  const payload = answer.data.done;
  // The mutation counts as done even if a field of its payload cannot be resolved.
  if (payload === null || payload === undefined) {
    await record.end();
    throw upstreamsError(error?.type, error?.message || "Upstream refused");
  }
  const body = JSON.stringify(payload);
  return { answer: payload, isStored: await storeWrite(writer, write, { headers: {}, body, sentAt, record }) };
}

async function sendMutation(
  writer: Writer,
  { document, input }: { document: string; input: Fields },
  { about }: Pick<Write, "about">,
  record: WriteRecord,
): Promise<GraphqlAnswer> {
  const { ctx, caller } = writer;
  const own = caller.by.of === "upstream" ? caller.by.mutate : null;
  const seenAt = ctx.clock.now();
  try {
    return await known(ctx, record, async () => {
      const onAnswer = (answer: Pick<Received, "status" | "headers">) => record.heard(answer);
      if (!own) return ctx.upstream.mutate(document, { input }, { onAnswer });
      const received = await own(document, { input });
      onAnswer(received);
      return graphqlAnswer(received, parseGraphql(received.text), { seenAt, mutates: true });
    });
  } catch (error) {
    if (error instanceof OutcomeUnknownFault) await markForRefresh(writer, about);
    if (!(error instanceof UpstreamRefusedError)) throw error;
    const [first] = rowsOf(objectOf(error.body).errors);
    throw upstreamsError(textOf(first?.type), textOf(first?.message) || error.message);
  }
}

/** Runs this, and says in GraphQL's form why upstream could not be asked, or not for this caller. */
export async function inOurWords<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof ShareSpentFault) throw typedError("RATE_LIMITED", error.message);
    if (error instanceof ApiFault && error.status === 422)
      throw typedError("UNPROCESSABLE", [error.message, ...fieldFaults(error)].join(": "));
    if (error instanceof ApiFault) throw typedError("SERVICE_UNAVAILABLE", error.message);
    throw error;
  }
}

function fieldFaults({ errors }: ApiFault): string[] {
  return typeof errors === "string" ? [errors] : (errors ?? []).flatMap((one) => detail({ ...one }));
}

/** Upstream's refusal in GraphQL's form. */
function upstreamRefusal(status: number, body: string): Error {
  const { message, errors } = parsedRefusal(body);
  const details = Array.isArray(errors) ? errors.flatMap((one) => detail(one)) : [];
  const text = [message, ...details].join(": ");
  if (status === 404 || status === 410) return typedError("NOT_FOUND", text);
  if (status === 403) return typedError("FORBIDDEN", text);
  return typedError(status >= 500 ? "SERVICE_UNAVAILABLE" : "UNPROCESSABLE", text);
}

function detail(one: Json): string[] {
  if (typeof one === "string") return [one];
  if (typeof one !== "object" || one === null || Array.isArray(one)) return [];
  return [typeof one.message === "string" ? one.message : `${one.field} is ${String(one.code).replaceAll("_", " ")}`];
}

function parsedRefusal(body: string): { message: string; errors?: Json } {
  try {
    const { message, errors = null } = objectOf(JSON.parse(body));
    return { message: textOf(message) ?? "Upstream refused", errors };
  } catch (error) {
    if (error instanceof SyntaxError) return { message: "Upstream refused, and not in JSON" };
    throw error;
  }
}
