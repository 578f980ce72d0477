/** Who makes a request, and its headers beside the usual ones. */
export interface Asking {
  /** `null`: the request has no token. */
  token?: string | null;
  /** Undefined leaves a usual header out. */
  headers?: Record<string, string | undefined>;
}

export interface Answered {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: bodies are compared and picked from, not trusted
  body: any;
}

/** Asks the server at `base`. Redirects are answers. */
export async function askAt(
  base: string,
  method: string,
  path: string,
  options: Asking & { body?: string } = {},
): Promise<Answered> {
  const headers = new Headers({ "user-agent": "test", accept: "application/vnd.github+json" });
  if (options.token) headers.set("authorization", `Bearer ${options.token}`);
  if (options.body !== undefined) headers.set("content-type", "application/json");
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    if (value === undefined) headers.delete(name);
    else headers.set(name, value);
  }
  const answer = await fetch(base + path, { method, headers, body: options.body ?? null, redirect: "manual" });
  const text = await answer.text();
  const isJson = /json/.test(answer.headers.get("content-type") ?? "") && text !== "";
  return { status: answer.status, headers: answer.headers, text, body: isJson ? JSON.parse(text) : null };
}

/** Upstream's answer as the mirror would write it, with the mirror's addresses. */
export function rebased(text: string, from: string, to: string): unknown {
  return JSON.parse(text.replaceAll(`${from}/`, `${to}/`));
}
