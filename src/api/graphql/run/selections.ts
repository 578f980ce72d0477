import { type FieldNode, type FragmentDefinitionNode, Kind, type SelectionSetNode } from "graphql";

/**
 * Whether the test holds for a field that these fields select, directly or deeper, through fragments as well.
 * @param options.isDeep false: only fields that are selected directly
 */
export function selects(
  {
    fieldNodes,
    fragments,
  }: { fieldNodes: readonly FieldNode[]; fragments: Readonly<Record<string, FragmentDefinitionNode>> },
  test: (field: FieldNode) => boolean,
  { isDeep = true }: { isDeep?: boolean } = {},
): boolean {
  const looked = new Set<string>();
  const looksIn = (set: SelectionSetNode | undefined): boolean =>
    set?.selections.some((selection) => {
      if (selection.kind === Kind.FIELD) return test(selection) || (isDeep && looksIn(selection.selectionSet));
      if (selection.kind === Kind.INLINE_FRAGMENT) return looksIn(selection.selectionSet);
      const { value: name } = selection.name;
      if (looked.has(name)) return false;
      looked.add(name);
      return looksIn(fragments[name]?.selectionSet);
    }) ?? false;
  return fieldNodes.some(({ selectionSet }) => looksIn(selectionSet));
}
