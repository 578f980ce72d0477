interface PathNode {
  readonly fixed: Map<string, PathNode>;
  any: PathNode | null;
  /** The forms that go on behind a `**`. */
  many: PathNode | null;
  methods: readonly string[];
  form: string;
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
      node.form = form;
    }
  }

  /** The form that a path has with this method; null: it has none. A HEAD is a GET. A trailing slash is a segment of its own. */
  formOf(method: string, path: string): string | null {
    return formOf(this.#root, path.split("/").slice(1), 0, nameOf(method));
  }

  /** Whether a form without `**` matches the path and ends in the path's last word. */
  hasWord(method: string, path: string): boolean {
    const segments = path.split("/").slice(1);
    const word = segments.pop() ?? "";
    const node = segments.reduce<PathNode | null>((at, one) => at && (at.fixed.get(one) ?? at.any), this.#root);
    return node?.fixed.get(word)?.methods.includes(nameOf(method)) ?? false;
  }
}

function nameOf(method: string): string {
  return method === "HEAD" ? "GET" : method;
}

/** A form has at most one `**`, so this takes only a few steps for each segment. */
function formOf(node: PathNode, segments: readonly string[], at: number, method: string): string | null {
  const segment = segments[at];
  const { many } = node;
  if (segment === undefined) return [node, many].find((one) => one?.methods.includes(method))?.form ?? null;
  const fixed = node.fixed.get(segment);
  const named = (fixed && formOf(fixed, segments, at + 1, method)) ?? null;
  if (named !== null) return named;
  const any = node.any && segment !== "" ? formOf(node.any, segments, at + 1, method) : null;
  if (any !== null || !many) return any;
  for (let end = at; end <= segments.length; end++) {
    const form = formOf(many, segments, end, method);
    if (form !== null) return form;
  }
  return null;
}

function newNode(): PathNode {
  return { fixed: new Map(), any: null, many: null, methods: [], form: "" };
}
