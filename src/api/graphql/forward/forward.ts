/** Forwards whole documents to upstream, with the caller's own token. */
import { type FieldNode, Kind, type SelectionNode } from "graphql";
import { findUsersById } from "../../../mirror/read/nodes.ts";
import { graphqlPath } from "../../../upstream/protocol/address.ts";
import type { UpstreamUnavailableError } from "../../../upstream/protocol/errors.ts";
import type { Answer, ApiContext } from "../../call/call.ts";
import { accessOf, type ForwardOwn, type User } from "../../callers/permissions.ts";
import { readFault } from "../../callers/upstream-for-callers.ts";
import { ApiFault } from "../../dialect/fault.ts";
import { decodeId } from "../../dialect/node-id.ts";
import { writeForwarder } from "../../forward/forwarded-writes.ts";
import { arrivingAnswer, type CallersRequest, opened } from "../../forward/forwarding.ts";
import { textsGiven } from "./given.ts";
import { distinct, findPlaces, MOST_IDS, mutationNames, touchedBy } from "./touched.ts";
import type { WholeDocument } from "./unknown.ts";

/** Sends the body once, as it came. @throws ApiFault 502 or 504 when no answer begins */
export async function forwardWhole(
  ctx: ApiContext,
  caller: User,
  { document, operation, variables }: WholeDocument,
  { requestId, ...request }: Pick<CallersRequest, "headers" | "body" | "api" | "gone"> & { requestId: string },
): Promise<Answer> {
  if (caller.by.of !== "upstream")
    throw new Error("A document of a caller without a token of upstream's was forwarded");
  const { upstreamUrl } = ctx.config;
  const path = graphqlPath(upstreamUrl);
  const headers = { ...request.headers, "content-type": request.headers["content-type"] ?? "application/json" };
  const asked: CallersRequest = { ...request, headers, method: "POST", path, upstreamUrl, log: ctx.log };
  const own = caller.by.forward;
  const isMutation = operation.operation === "mutation";
  let send: ForwardOwn = (sent) => own({ ...sent, isAbsolute: true, ...(isMutation ? {} : { signal: request.gone }) });
  if (isMutation) {
    const names = mutationNames(operation);
    const ids = textsGiven(document, variables).map(({ text }) => text);
    const touching = { access: accessOf(caller), ids, names };
    const touched = await touchedBy(ctx, { ...touching, answer: null });
    const [only, ...others] = touched;
    const repositoryId = only && others.length === 0 ? only.repository.id : null;
    const recorded = {
      method: "POST",
      route: `mutation ${names.join(", ")}`.slice(0, 200),
      path: "/graphql",
      repositoryId,
    };
    send = await writeForwarder({ ctx, caller, requestId }, recorded, send, {
      touched,
      learn: (answer) => touchedBy(ctx, { ...touching, answer }),
    });
  }
  return arrivingAnswer(asked, await opened(asked, send, (error) => outageFault(error, ctx.clock.now(), isMutation)));
}

function outageFault(error: UpstreamUnavailableError, now: Date, isMutation: boolean): unknown {
  const fault = readFault(error, { now, isLate: false, whose: "your" });
  if (!isMutation || error.outage === "unreachable" || !(fault instanceof ApiFault)) return fault;
  const message = `${fault.message} Whether it did what was asked is not known; it is not sent again.`;
  return new ApiFault(fault.status, message, { cause: error });
}

/** The names of inputs that hold ids of what a mutation changes or uses. A fork is asked about by itself. */
const ID = /^(?!clientMutationId$|headRepositoryId$)(id|\w+Ids?)$/;

/**
 * Whether the mirror knows everything that a mutation of ours names. It asks about all together, since nothing is paid for
 * yet. What names too much to be asked about counts as unknown.
 * @throws what Postgres refuses
 */
export async function knowsAllNamed(
  ctx: ApiContext,
  caller: User,
  { operation, variables }: WholeDocument,
): Promise<boolean> {
  const texts = inputsOf({ operation, variables }).flatMap(({ name, text }) => (ID.test(name) ? [text] : []));
  const named = distinct(texts.flatMap((text) => decodeId(text) ?? []));
  if (named.length > MOST_IDS || texts.some((text) => !decodeId(text))) return false;
  const accounts = named.filter(({ type }) => type === "User" || type === "Organization" || type === "Bot");
  const users = accounts.length === 0 ? [] : await findUsersById(ctx.db, [...new Set(accounts.map(({ id }) => id))]);
  const places = await findPlaces(ctx, named, accessOf(caller));
  return named.every((one) =>
    accounts.includes(one)
      ? users.some(({ key }) => key === String(one.id))
      : places.some(({ resource }) => resource?.type === one.type && resource.id === one.id),
  );
}

function inputsOf({
  operation,
  variables,
}: Pick<WholeDocument, "operation" | "variables">): ReturnType<typeof textsGiven> {
  // Fields below the payload name no resource that changes.
  const selections = operation.selectionSet.selections.map(bare);
  const definition = { ...operation, selectionSet: { ...operation.selectionSet, selections } };
  return textsGiven({ kind: Kind.DOCUMENT, definitions: [definition] }, variables);
}

function bare(selection: SelectionNode): SelectionNode {
  if (selection.kind !== Kind.FIELD) return selection;
  const { selectionSet: _, ...field }: FieldNode = selection;
  return field;
}
