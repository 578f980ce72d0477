import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import type { SimulatorOptions } from "../../src/simulator/simulator.ts";
import type { AppInput } from "../../src/simulator/world/apps.ts";
import { openSimulated, type Reply, type Simulated, START } from "./simulated.ts";

// Making a key takes a tenth of a second, so a whole file uses one.
const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });

export interface Claims {
  readonly iss?: unknown;
  readonly iat?: unknown;
  readonly exp?: unknown;
}

/** A JWT as an App makes it. A test may change each claim. */
export function jwtOf(claims: Claims, key: KeyObject = pair.privateKey, header: object = { alg: "RS256", typ: "JWT" }) {
  const part = (json: object) => Buffer.from(JSON.stringify(json)).toString("base64url");
  const head = `${part(header)}.${part(claims)}`;
  return `${head}.${sign("RSA-SHA256", Buffer.from(head), key).toString("base64url")}`;
}

export interface AppWorld extends Simulated {
  readonly installationId: number;
  /** Calls the simulator as the App, with a new JWT by the simulator's clock. */
  app(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>;
  /** A new installation token. */
  token(body?: object): Promise<string>;
  jwt(claims?: Claims): string;
}

export const APP_ID = 4711;
export const CLIENT_ID = "Iv23liTestClient";

/** An App that is installed on all repositories of `octo`: the public `octo/demo` and the private `octo/secret`. */
export async function openAppWorld(app: Partial<AppInput> = {}, options: SimulatorOptions = {}): Promise<AppWorld> {
  const it = await openSimulated(options);
  it.simulator.world.addRepository({ ownerId: it.owner.id, name: "secret", visibility: "private" });
  const keys = [String(pair.publicKey.export({ type: "spki", format: "pem" }))];
  const input = { id: APP_ID, clientId: CLIENT_ID, slug: "mirror", keys, installations: [{ account: "octo" }], ...app };
  const made = it.simulator.apps.create(input);
  const [installation] = it.simulator.apps.of(made.app);
  const jwt = (claims: Claims = {}) => {
    const now = Math.floor(it.clock.now() / 1_000);
    return jwtOf({ iss: CLIENT_ID, iat: now - 60, exp: now + 540, ...claims });
  };
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    it.ask(method, path, { body, token: null, headers: { authorization: `Bearer ${jwt()}`, ...headers } });
  return {
    ...it,
    installationId: installation?.id ?? 0,
    app: call,
    jwt,
    async token(body = {}) {
      const reply = await call("POST", `/app/installations/${installation?.id}/access_tokens`, body);
      if (reply.status !== 201) throw new Error(`No token: ${reply.text}`);
      return reply.body.token;
    },
  };
}

export const NOW = START / 1_000;
