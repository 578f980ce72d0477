import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { eventually } from "../support/patience.ts";
import { openWorld } from "../support/world.ts";

export const OPERATOR = "the-operators-token";
export const NASTY = `<img src=x onerror="alert('1')">`;
export const WRONG_LOGINS = 3;

export interface Signed {
  cookie: string;
  word: string;
}

// biome-ignore lint/suspicious/noExplicitAny: what is told is JSON, and tests look into it as the page does.
export type Told = any;

export type OperatorWorld = Awaited<ReturnType<typeof openOperatorWorld>>;

/** A mirror whose operator's page the test asks as a browser does. */
export async function openOperatorWorld() {
  const world = await openWorld({
    env: { OPERATOR_TOKEN: OPERATOR, FAILED_LOGINS_PER_ADDRESS: String(WRONG_LOGINS), TRUSTED_PROXIES: "loopback" },
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 3, repositories: 2, issues: 4, pulls: 1 }),
  });
  await world.mirror(world.first);

  const ask = (path: string, init: RequestInit = {}, at = world.url) =>
    fetch(at + path, { redirect: "manual", ...init });

  /** Attempts to sign in are counted by address. Each has an address of its own, so that no test disturbs another. */
  let addresses = 0;
  const asSomebody = () => ({ "x-forwarded-for": `192.0.${++addresses}.2` });

  function signIn(token: string, headers: Record<string, string> = asSomebody()): Promise<Response> {
    const form = { "content-type": "application/x-www-form-urlencoded", ...headers };
    return ask("/-/session", { method: "POST", headers: form, body: new URLSearchParams({ token }).toString() });
  }

  async function signedIn(): Promise<Signed> {
    const answer = await signIn(OPERATOR);
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/-/"]);
    const cookie = (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const page = await (await ask("/-/", { headers: { cookie } })).text();
    return { cookie, word: /<meta name="word" content="([\w-]+)">/.exec(page)?.[1] ?? "" };
  }

  /** Sends the page's own request for a command. `headers` add to its headers or override them. */
  function command({ cookie, word }: Signed, body: object, headers: Record<string, string> = {}): Promise<Response> {
    const own = { cookie, "content-type": "application/json", "x-tain-session-word": word, origin: world.url };
    return ask("/-/operator/commands", { method: "POST", headers: { ...own, ...headers }, body: JSON.stringify(body) });
  }

  /** Asks for a command, and waits for its outcome. */
  async function done(signed: Signed, body: object): Promise<Told> {
    const asked = await command(signed, body);
    const { id, message } = (await asked.json()) as { id: string; message?: string };
    expect({ status: asked.status, message }).toEqual({ status: 202, message: undefined });
    return await eventually(async () => {
      const told = (await view(signed, `commands/${id}`)).body;
      expect(told.state).toBe("done");
      return told;
    });
  }

  async function view({ cookie }: Pick<Signed, "cookie">, path: string, headers: Record<string, string> = {}) {
    const answer = await ask(`/-/operator/${path}`, { headers: { cookie, ...headers } });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, body: (text === "" ? null : JSON.parse(text)) as Told };
  }

  async function made(payload: object, { status = "failed", reason = null as string | null } = {}) {
    const guid = randomUUID();
    const [row] = await world.ctx.db.query<{ id: string }>(sql`
      insert into deliveries (hook_id, guid, event, action, payload, status, attempts, reason, received_at, settled_at)
        values (1, ${guid}, 'star', 'created', ${Buffer.from(JSON.stringify(payload))}, ${status}, 8, ${reason}, now(), now())
        returning id`);
    return { guid, id: row?.id ?? "" };
  }

  return {
    ...{ world, ask, asSomebody, signIn, signedIn, command, done, view, made },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}
