import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { buildSchema, execute, parse, validate } from "graphql";
import { announce } from "../processes.ts";

/** Answers whose objects lie ready, through graphql-js: a document is parsed and validated once. */
interface Page {
  variables: { owner: string; repo: string; endCursor: string };
  answer: { data: { repository: { hasIssuesEnabled: boolean; issues: { nodes: { author: object | null }[] } } } };
}

const schema = buildSchema(readFileSync(new URL("../../src/api/graphql/schema.graphql", import.meta.url), "utf8"));
const pages = new Map<string, unknown>();
for (const { variables, answer } of JSON.parse(readFileSync(process.env.PAGES as string, "utf8")) as Page[]) {
  const { repository } = answer.data;
  // So that graphql-js knows which type of `Actor` it is.
  for (const { author } of repository.issues.nodes) if (author) Object.assign(author, { __typename: "User" });
  pages.set(`${variables.owner}/${variables.repo} ${variables.endCursor}`, repository.issues);
}
const rootValue = {
  repository: ({ owner, name }: { owner: string; name: string }) => ({
    hasIssuesEnabled: true,
    issues: ({ after }: { after: string }) => pages.get(`${owner}/${name} ${after}`),
  }),
};

const documents = new Map<string, ReturnType<typeof parse>>();
function documentOf(text: string): ReturnType<typeof parse> {
  const known = documents.get(text);
  if (known) return known;
  const document = parse(text);
  const [error] = validate(schema, document);
  if (error) throw error;
  documents.set(text, document);
  return document;
}

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const { query, variables } = JSON.parse(Buffer.concat(chunks).toString());
  const result = await execute({ schema, document: documentOf(query), rootValue, variableValues: variables });
  const body = Buffer.from(JSON.stringify(result));
  response.writeHead(200, { "Content-Type": "application/json; charset=utf-8", "Content-Length": body.length });
  response.end(body);
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as { port: number };
  announce(`http://127.0.0.1:${port}`);
});
