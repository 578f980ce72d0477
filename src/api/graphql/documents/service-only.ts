import { readFileSync } from "node:fs";

/** What the service's schema has and ours lacks. Names in one text are separated by blanks. */
export interface ServiceOnly {
  source: string;
  /** The fields that a type of ours lacks. A field that is never null ends in an exclamation mark. */
  fields: Record<string, string>;
  /** The arguments that a field of ours lacks (`Repository.issues`), and the fields that an input type of ours lacks. */
  inputs: Record<string, string>;
  /** The interfaces and unions that ours lacks, with those of our types that belong to each. */
  groups: Record<string, string>;
  /** The object types that ours lacks. */
  objects: string;
}

/** What only the service's schema has, to look things up in. */
export interface ServiceNames {
  /** Whether the service has this field of a type of ours, and whether it is never null there. */
  field(typeName: string, name: string): { isRequired: boolean } | null;
  /** Whether the service has this argument of a field (`Repository.issues`), or this field of an input type. */
  hasInput(owner: string, name: string): boolean;
  /** Our types that belong to this interface or union. Null: the service has none of that name, or ours has it. */
  membersOf(name: string): readonly string[] | null;
}

/** What only the service's schema has, as `scripts/generate/service-graphql.ts` found it. */
export function serviceNames(): ServiceNames {
  const file = new URL("./service-only.json", import.meta.url);
  // No type can say what stands in a file: the script writes it so.
  const { fields, inputs, groups, objects } = JSON.parse(readFileSync(file, "utf8")) as ServiceOnly;
  const setOf = (text: string | undefined) => new Set(text?.split(" ").filter(Boolean));
  const fieldsOf = new Map(Object.entries(fields).map(([type, text]) => [type, setOf(text)]));
  const inputsOf = new Map(Object.entries(inputs).map(([owner, text]) => [owner, setOf(text)]));
  const members = new Map(Object.entries(groups).map(([name, text]) => [name, [...setOf(text)]]));
  // No value that is shown here has any of these types.
  for (const name of setOf(objects)) members.set(name, []);
  return {
    field: (typeName, name) => {
      const known = fieldsOf.get(typeName);
      if (known?.has(name)) return { isRequired: false };
      return known?.has(`${name}!`) ? { isRequired: true } : null;
    },
    hasInput: (owner, name) => inputsOf.get(owner)?.has(name) ?? false,
    membersOf: (name) => members.get(name) ?? null,
  };
}
