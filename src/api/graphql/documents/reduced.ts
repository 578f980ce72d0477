/** What is left of a document without the fields that only the service's schema has. */
import {
  type ArgumentNode,
  type ASTNode,
  BREAK,
  type DefinitionNode,
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  type InlineFragmentNode,
  isAbstractType,
  isCompositeType,
  isInputObjectType,
  isInterfaceType,
  isNonNullType,
  isObjectType,
  Kind,
  type NameNode,
  type SelectionNode,
  type SelectionSetNode,
  TypeInfo,
  type ValueNode,
  visit,
  visitWithTypeInfo,
} from "graphql";
import type { ServiceNames } from "./service-only.ts";

/** What only the service has of a field. */
export interface Lack {
  message: string;
  /** Whether the service's type says that it is never null. */
  isRequired: boolean;
}

/** A document in which each field that is not held is a `__typename` under the field's name. */
export interface LackingDocument {
  document: DocumentNode;
  lacks: ReadonlyMap<FieldNode, Lack>;
}

/**
 * Reduces a document to what our schema may know. What neither schema has stays, and is refused by name. Null: that
 * takes more steps than `most`. Pure.
 * @param most how many nodes are visited, those included that are made: a selection of an unknown interface is made
 *   anew for each of our types that it stands for, at each of its places, so few characters can ask for endlessly many
 */
export function reduced(
  document: DocumentNode,
  { schema, service, most }: { schema: GraphQLSchema; service: ServiceNames; most: number },
): LackingDocument | null {
  const types = new TypeInfo(schema);
  const lacks = new Map<FieldNode, Lack>();
  const fragments = fragmentsIn(document);
  let visited = 0;
  const lacksFragment = (name: string) => {
    const fragment = fragments.get(name);
    return fragment && !schema.getType(fragment.typeCondition.name.value) ? fragment : undefined;
  };
  const replaced = (name: string, selectionSet: SelectionSetNode, directives: readonly DirectiveNode[] | undefined) => {
    const members = service.membersOf(name);
    const parent = types.getParentType();
    if (!members || !isCompositeType(parent)) return undefined;
    const shown = members.filter((one) => overlaps(schema, parent, one));
    return fragmentsOn(shown, selectionSet, directives);
  };
  const replacing = (node: ASTNode): ASTNode | undefined => {
    switch (node.kind) {
      case Kind.FIELD: {
        const parent = types.getParentType();
        const lack = parent && lackOf(node, parent, service);
        if (!lack) return undefined;
        const left = leafNamed(node);
        lacks.set(left, lack);
        return left;
      }
      case Kind.INLINE_FRAGMENT: {
        const name = node.typeCondition?.name.value;
        return name === undefined || schema.getType(name)
          ? undefined
          : replaced(name, node.selectionSet, node.directives);
      }
      case Kind.FRAGMENT_SPREAD: {
        const fragment = lacksFragment(node.name.value);
        return fragment && replaced(fragment.typeCondition.name.value, fragment.selectionSet, node.directives);
      }
      default:
        return undefined;
    }
  };
  const enter = (node: ASTNode): unknown => {
    visited += 1;
    return visited > most ? BREAK : replacing(node);
  };
  const edited = visit(document, visitWithTypeInfo(types, { enter }));
  return visited > most ? null : { document: withoutUnused(document, edited), lacks };
}

function fragmentsIn({ definitions }: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const one of definitions) if (one.kind === Kind.FRAGMENT_DEFINITION) fragments.set(one.name.value, one);
  return fragments;
}

/** What of a field only the service has. Null: nothing, or nobody has it. */
function lackOf(node: FieldNode, parent: GraphQLCompositeType, service: ServiceNames): Lack | null {
  const name = node.name.value;
  const known = isObjectType(parent) || isInterfaceType(parent) ? parent.getFields()[name] : undefined;
  if (!known) {
    const field = service.field(parent.name, name);
    return field && { message: `\`${name}\` of ${parent.name} is not mirrored.`, isRequired: field.isRequired };
  }
  const input = lackedInput(node.arguments ?? [], known, `${parent.name}.${name}`, service);
  if (input === null) return null;
  const message = `The mirror cannot answer \`${name}\` of ${parent.name} by \`${input}\`.`;
  return { message, isRequired: isNonNullType(known.type) };
}

/** The argument, or the field of an input, that only the service has; null: there is none. */
function lackedInput(
  given: readonly ArgumentNode[],
  field: GraphQLField<unknown, unknown>,
  owner: string,
  service: ServiceNames,
): string | null {
  for (const { name, value } of given) {
    const known = field.args.find((one) => one.name === name.value);
    if (!known && service.hasInput(owner, name.value)) return name.value;
    const inner = known ? lackedInputField(value, known.type, service) : null;
    if (inner !== null) return inner;
  }
  return null;
}

function lackedInputField(value: ValueNode, type: GraphQLInputType, service: ServiceNames): string | null {
  if (value.kind === Kind.LIST) {
    for (const one of value.values) {
      const inner = lackedInputField(one, type, service);
      if (inner !== null) return inner;
    }
    return null;
  }
  const named = getNamedType(type);
  if (value.kind !== Kind.OBJECT || !isInputObjectType(named)) return null;
  for (const { name, value: inner } of value.fields) {
    const known = named.getFields()[name.value];
    if (!known && service.hasInput(named.name, name.value)) return name.value;
    const deeper = known ? lackedInputField(inner, known.type, service) : null;
    if (deeper !== null) return deeper;
  }
  return null;
}

/** A field of every type, under the same name in the answer and at the same place in the document. */
function leafNamed({ alias, name, directives, loc }: FieldNode): FieldNode {
  const leaf: FieldNode = {
    kind: Kind.FIELD,
    alias: alias ?? name,
    name: { kind: Kind.NAME, value: "__typename" },
    directives: directives ?? [],
  };
  return loc ? { ...leaf, loc } : leaf;
}

function overlaps(schema: GraphQLSchema, parent: GraphQLCompositeType, member: string): boolean {
  const type = schema.getType(member);
  if (!isAbstractType(parent)) return parent === type;
  return isObjectType(type) && schema.isSubType(parent, type);
}

/** The selection on each of these types. On none it is a selection that is never made, since none may be empty. */
function fragmentsOn(
  names: readonly string[],
  selectionSet: SelectionSetNode,
  directives: readonly DirectiveNode[] | undefined,
): InlineFragmentNode {
  const selections = names.map(
    (value): SelectionNode => ({
      kind: Kind.INLINE_FRAGMENT,
      typeCondition: { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value } },
      selectionSet,
    }),
  );
  if (selections.length === 0) return NEVER;
  return {
    kind: Kind.INLINE_FRAGMENT,
    directives: directives ?? [],
    selectionSet: { kind: Kind.SELECTION_SET, selections },
  };
}

/** `... @include(if: false) { __typename }` */
const NEVER: InlineFragmentNode = {
  kind: Kind.INLINE_FRAGMENT,
  directives: [
    {
      kind: Kind.DIRECTIVE,
      name: { kind: Kind.NAME, value: "include" },
      arguments: [
        {
          kind: Kind.ARGUMENT,
          name: { kind: Kind.NAME, value: "if" },
          value: { kind: Kind.BOOLEAN, value: false },
        },
      ],
    },
  ],
  selectionSet: {
    kind: Kind.SELECTION_SET,
    selections: [{ kind: Kind.FIELD, name: { kind: Kind.NAME, value: "__typename" } }],
  },
};

/** What a document's operations use, directly and through fragments. */
interface Used {
  variables: ReadonlySet<string>;
  fragments: ReadonlySet<string>;
}

function usedIn(document: DocumentNode): Used {
  const variables = new Set<string>();
  const reached = new Set<string>();
  const open: DefinitionNode[] = document.definitions.filter((one) => one.kind === Kind.OPERATION_DEFINITION);
  const fragments = fragmentsIn(document);
  for (let definition = open.pop(); definition; definition = open.pop())
    visit(definition, {
      VariableDefinition: () => false,
      Variable: ({ name }) => void variables.add(name.value),
      FragmentSpread: ({ name: { value: name } }) => {
        const fragment = reached.has(name) ? undefined : fragments.get(name);
        reached.add(name);
        if (fragment) open.push(fragment);
      },
    });
  return { variables, fragments: reached };
}

/**
 * The reduced document without the variables and fragments that only what was left out used. What the caller never used
 * stays, and is refused.
 */
function withoutUnused(whole: DocumentNode, left: DocumentNode): DocumentNode {
  const [before, after] = [usedIn(whole), usedIn(left)];
  const isIdle = (of: keyof Used, { value: name }: NameNode) => before[of].has(name) && !after[of].has(name);
  return visit(left, {
    VariableDefinition: ({ variable: { name } }) => (isIdle("variables", name) ? null : false),
    FragmentDefinition: ({ name }) => (isIdle("fragments", name) ? null : false),
    SelectionSet: () => false,
  });
}
