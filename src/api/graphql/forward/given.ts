import { type DocumentNode, Kind, type ValueNode, valueFromASTUntyped, visit } from "graphql";

/** A text somewhere within an argument, with the name that stands next to the text. */
interface GivenText {
  name: string;
  text: string;
}

/**
 * All texts within a document's arguments, those in variables included. A variable is looked into once for each name that
 * it stands next to: a thousand arguments may use one that holds a thousand texts. Pure.
 */
export function textsGiven(document: DocumentNode, variables: Readonly<Record<string, unknown>>): GivenText[] {
  const found: GivenText[] = [];
  const values = { ...variables };
  const met = new Set<string>();
  const look = (name: string, value: unknown): void => {
    if (typeof value === "string") found.push({ name, text: value });
    else if (Array.isArray(value)) for (const one of value) look(name, one);
    else if (typeof value === "object" && value !== null)
      for (const [inner, one] of Object.entries(value)) look(inner, one);
  };
  const read = (name: string, node: ValueNode): void => {
    if (node.kind === Kind.LIST) for (const one of node.values) read(name, one);
    else if (node.kind === Kind.OBJECT) for (const field of node.fields) read(field.name.value, field.value);
    else if (node.kind !== Kind.VARIABLE) look(name, valueFromASTUntyped(node));
    else if (!met.has(`${name} ${node.name.value}`)) {
      met.add(`${name} ${node.name.value}`);
      look(name, values[node.name.value]);
    }
  };
  visit(document, {
    // A document declares its variables before the arguments that use them.
    VariableDefinition: ({ variable: { name }, defaultValue }) => {
      if (defaultValue && values[name.value] === undefined) values[name.value] = valueFromASTUntyped(defaultValue);
      return false;
    },
    Argument: ({ name, value }) => {
      read(name.value, value);
      return false;
    },
  });
  return found;
}
