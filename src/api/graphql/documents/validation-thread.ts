/** Validates long documents, on a thread of its own. */
import { readFileSync } from "node:fs";
import { buildSchema } from "graphql";
import { serveThread } from "../../../work/thread.ts";
import { type Fault, readDocument } from "./documents.ts";

// Valid, as in `schema.ts`.
const schema = buildSchema(readFileSync(new URL("../schema.graphql", import.meta.url), "utf8"), { assumeValid: true });

serveThread((text: string): Fault[] => {
  const read = readDocument(schema, text);
  if ("kind" in read) return [];
  return read.map(({ message, locations, path, extensions }) => ({
    ...{ message, locations, path },
    extensions: { ...extensions },
  }));
});
