/** Validates long documents, and reduces them, on a thread of its own. */
import { readFileSync } from "node:fs";
import { buildSchema } from "graphql";
import { serveThread } from "../../../work/thread.ts";
import type { DocumentDone, DocumentTask } from "./documents.ts";
import { packed } from "./packed.ts";
import { serviceNames } from "./service-only.ts";
import { MOST_NODES, readDocument, readReduced } from "./validity.ts";

// Valid, as in `schema.ts`.
const schema = buildSchema(readFileSync(new URL("../schema.graphql", import.meta.url), "utf8"), { assumeValid: true });
const service = serviceNames();

serveThread(({ text, of }: DocumentTask): DocumentDone => {
  if (of === "reduced") {
    const found = readReduced(text, { schema, service, most: MOST_NODES });
    return { faults: [], reduced: typeof found === "object" ? packed(found) : null };
  }
  const read = readDocument(schema, text);
  if ("kind" in read) return { faults: [], reduced: null };
  const faults = read.map(({ message, locations, path, extensions }) => ({
    ...{ message, locations, path },
    extensions: { ...extensions },
  }));
  return { faults, reduced: null };
});
