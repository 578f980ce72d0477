import { type DocumentNode, valueFromASTUntyped, visit } from "graphql";

/** A text somewhere within an argument, with the name that stands next to the text. */
interface GivenText {
  name: string;
  text: string;
}

/** All texts within a document's arguments, those in variables included. Pure. */
export function textsGiven(document: DocumentNode, variables: Readonly<Record<string, unknown>>): GivenText[] {
  const found: GivenText[] = [];
  const look = (name: string, value: unknown): void => {
    if (typeof value === "string") found.push({ name, text: value });
    else if (Array.isArray(value)) for (const one of value) look(name, one);
    else if (typeof value === "object" && value !== null)
      for (const [inner, one] of Object.entries(value)) look(inner, one);
  };
  const values = { ...variables };
  visit(document, {
    // A document declares its variables before the arguments that use them.
    VariableDefinition: ({ variable: { name }, defaultValue }) => {
      if (defaultValue && values[name.value] === undefined) values[name.value] = valueFromASTUntyped(defaultValue);
      return false;
    },
    Argument: ({ name, value }) => {
      look(name.value, valueFromASTUntyped(value, values));
      return false;
    },
  });
  return found;
}
