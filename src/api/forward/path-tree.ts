interface Node {
  readonly fixed: Map<string, Node>;
  any: Node | null;
  /** Behind any number of segments. */
  many: Node | null;
  methods: readonly string[];
}

/** Forms of paths, in which `*` stands for one segment and `**` for any number of them. */
export class PathTree {
  readonly #root = newNode();

  /** @param forms with the methods of each, separated by blanks */
  constructor(forms: Readonly<Record<string, string>>) {
    for (const [form, methods] of Object.entries(forms)) {
      let node = this.#root;
      for (const segment of form.split("/").slice(1)) {
        if (segment === "**") node = node.many ??= newNode();
        else if (segment === "*") node = node.any ??= newNode();
        else node = node.fixed.getOrInsertComputed(segment, newNode);
      }
      node.methods = methods.split(" ");
    }
  }

  /** Whether a path has one of the forms with this method; a HEAD is a GET. A trailing slash is a segment of its own. */
  has(method: string, path: string): boolean {
    return matches(this.#root, path.split("/").slice(1), 0, nameOf(method));
  }

  /** Whether a form of one `*` for each segment, or of words, ends in the very word that the path ends in. */
  hasWord(method: string, path: string): boolean {
    const segments = path.split("/").slice(1);
    const word = segments.pop() ?? "";
    const node = segments.reduce<Node | null>((at, one) => at && (at.fixed.get(one) ?? at.any), this.#root);
    return node?.fixed.get(word)?.methods.includes(nameOf(method)) ?? false;
  }
}

function nameOf(method: string): string {
  return method === "HEAD" ? "GET" : method;
}

/** A form has one `**` at most, so this takes no more steps than a few for each segment. */
function matches(node: Node, segments: readonly string[], at: number, method: string): boolean {
  const segment = segments[at];
  if (segment === undefined) {
    return node.methods.includes(method) || (node.many?.methods.includes(method) ?? false);
  }
  const fixed = node.fixed.get(segment);
  if (fixed && matches(fixed, segments, at + 1, method)) return true;
  if (node.any && segment !== "" && matches(node.any, segments, at + 1, method)) return true;
  const { many } = node;
  if (!many) return false;
  for (let end = at; end <= segments.length; end++) if (matches(many, segments, end, method)) return true;
  return false;
}

function newNode(): Node {
  return { fixed: new Map(), any: null, many: null, methods: [] };
}
