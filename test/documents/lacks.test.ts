/** What our schema lacks of the documents of public clients, and what is left of each without that. */
import { expect, test } from "vitest";
import { Documents } from "../../src/api/graphql/documents/documents.ts";
import { apiSchema } from "../../src/api/graphql/schema.ts";
import { codeSpansOf, readPage } from "../docs/markdown.ts";
import { clientDocuments } from "./all.ts";
import type { ClientDocument } from "./document.ts";
import { LACKS } from "./lacks.ts";

const documents = new Documents(apiSchema());

async function lacksOf({ query }: ClientDocument): Promise<readonly string[] | "refused"> {
  if ("kind" in (await documents.read(query, "somebody"))) return [];
  const left = query.startsWith("mutation") ? null : await documents.reduced(query, { caller: "somebody", help: "" });
  if (!left) return "refused";
  const named = [...left.unheld.values()].map(({ error: { message } }) => /^`(\w+)` of (\w+) /.exec(message));
  return [...new Set(named.map((match) => `${match?.[2]}.${match?.[1]}`))].toSorted();
}

test.each(clientDocuments)("$name", async (document) => {
  expect(await lacksOf(document)).toEqual(LACKS[document.name] ?? []);
});

test("the page for clients names each of these fields, and no other", () => {
  const [, section = ""] = readPage("docs/clients.md").split("\n## With a token of Tain's own\n");
  const [, table = ""] = section.split("\n| what is not held |");
  const named = codeSpansOf(table).filter((span) => /^[a-z]\w+$/.test(span));
  const lacked = Object.values(LACKS).flatMap((fields) => (fields === "refused" ? [] : fields));
  expect(named.toSorted()).toEqual([...new Set(lacked.map((field) => field.split(".")[1]))].toSorted());
});
