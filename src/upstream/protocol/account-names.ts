import { type Fields, isObject, type Json } from "../../json.ts";
import { asSent, list, nullable, text } from "./field-readers.ts";
import { IDS_A_FIELD, RATE_LIMIT } from "./graphql.ts";
import type { GraphqlAnswer, GraphqlError } from "./upstream.ts";

export interface NamedAccount {
  id: number;
  nodeId: string;
  /** Whether its name was read before. */
  isKnown: boolean;
}

/** Of so many accounts a query for a point tells the names. */
export const NAMES_A_QUERY = 250;

/** What upstream may be found to lack: classic tokens read emails with the scope `user:email`. */
export const EMAILS = "public emails of people";

/**
 * The document that asks for the names of these accounts, at most `NAMES_A_QUERY`, and how its answer is read: what is
 * shown of each account by REST's keys, or "unclear" if upstream does not say, or not now. Pure.
 */
export function namesQuestion(
  asked: readonly NamedAccount[],
  { withEmails }: { withEmails: boolean },
): {
  document: string;
  variables: Fields;
  read: (answer: Pick<GraphqlAnswer, "data" | "errors">) => Map<number, Fields | "unclear">;
} {
  const parts = Array.from({ length: Math.ceil(asked.length / IDS_A_FIELD) }, (_, at) => ({
    alias: `names${at}`,
    accounts: asked.slice(at * IDS_A_FIELD, (at + 1) * IDS_A_FIELD),
  }));
  const email = withEmails ? " email" : "";
  const selection = `... on User { databaseId name company${email} } ... on Organization { databaseId name }`;
  const document = `query(${parts.map(({ alias }) => `$${alias}: [ID!]!`).join(", ")}) { ${RATE_LIMIT}
    ${parts.map(({ alias }) => `${alias}: nodes(ids: $${alias}) { ${selection} }`).join("\n")} }`;
  const variables = Object.fromEntries(
    parts.map(({ alias, accounts }) => [alias, accounts.map(({ nodeId }) => nodeId)]),
  );
  const read = ({ data, errors }: Pick<GraphqlAnswer, "data" | "errors">) =>
    new Map(
      parts.flatMap(({ alias, accounts }) => {
        const nodes = nullable(list(asSent))(data[alias], alias) ?? [];
        return accounts.map((account, at) => {
          const faults = errors.filter(({ path }) => path[0] === alias && (path[1] === at || path[1] === undefined));
          return [account.id, nameIn(nodes[at], account, faults)] as const;
        });
      }),
    );
  return { document, variables, read };
}

/**
 * What upstream shows of the account. Under a global id that a webhook has made up it shows none, or another; nor does it show
 * one that is gone. Such an account keeps the name that it had, or has none.
 */
function nameIn(node: Json | undefined, { id, isKnown }: NamedAccount, faults: readonly GraphqlError[]) {
  const none = isKnown ? {} : { name: null };
  if (faults.length > 0) return faults.every(({ type }) => type === "NOT_FOUND") ? none : "unclear";
  if (!isObject(node)) return "unclear";
  const { databaseId, name, company, email } = node;
  if (databaseId !== id) return none;
  return {
    ...(name === undefined ? {} : { name: nullable(text)(name, "name") }),
    ...(company === undefined ? {} : { company: nullable(text)(company, "company") }),
    // REST shows null where GraphQL shows an empty text.
    ...(email === undefined ? {} : { email: text(email, "email") || null }),
  };
}
