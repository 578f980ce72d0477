import { generateKeyPairSync, verify } from "node:crypto";
import { sql } from "../../db/sql.ts";
import { json, openUpstreamWorld, type Play, quotaHeaders, type UpstreamWorld, type WorldOptions } from "./world.ts";

const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
export const appPublicKey = publicKey;
const appKey = privateKey.export({ type: "pkcs1", format: "pem" }).toString();

/** GitHub docs: such tokens live for an hour. */
const lifeMs = 3_600_000;

/** Upstream's side of an App: it checks signatures, makes tokens, and knows which tokens it accepts. */
interface AppService {
  /** How far its clock is ahead of ours. */
  aheadMs: number;
  publicKey: typeof publicKey;
  suspended: Set<number>;
  /** The tokens that it accepts, by text: their installation, and when they end by its clock. */
  tokens: Map<string, { installation: number; endsAt: number }>;
  /** How many tokens it made. */
  made: number;
  /** What it answers to requests with a valid token. */
  answer: (installation: number, ...play: Parameters<Play>) => unknown;
}

export interface AppWorld extends UpstreamWorld {
  service: AppService;
  /**
   * The requests with a signature or a token of the App, each as installation and URL. Installation 0 is the App
   * itself.
   */
  asApp(): string[];
}

/**
 * A stand-in for upstream with an App, and our mirror of it. The App's installations are 1 on `octo` and 2 on `hexa`.
 */
export async function openAppWorld(options: WorldOptions = {}): Promise<AppWorld> {
  const service: AppService = {
    aheadMs: 0,
    publicKey,
    suspended: new Set(),
    tokens: new Map(),
    made: 0,
    answer: (_installation, { url }, response) => json(response, 200, { url }, dated(quotaHeaders(4_000))),
  };
  const nowOf = () => world.ctx.clock.now().getTime() + service.aheadMs;
  const dated = (headers: Record<string, string> = {}) => ({ ...headers, date: new Date(nowOf()).toUTCString() });
  const refuse = (response: Parameters<Play>[1], status: number, message: string) =>
    json(
      response,
      status,
      { message, documentation_url: "https://docs.github.com/rest", status: String(status) },
      dated(),
    );

  const world = await openUpstreamWorld(
    (asked, response, count) => {
      const { token, url, method } = asked;
      const making = /^\/app\/installations\/(\d+)\/access_tokens$/.exec(url);
      if (url.startsWith("/app")) {
        const problem = jwtProblem(token, service.publicKey, nowOf());
        if (problem) return refuse(response, 401, problem);
        if (!making || method !== "POST") return json(response, 200, { url }, dated());
        const installation = Number(making[1]);
        if (service.suspended.has(installation)) return refuse(response, 403, "This installation has been suspended");
        if (installation > 2) return refuse(response, 404, "Not Found");
        service.made += 1;
        const text = `ghs_${"x".repeat(service.made % 2 ? 36 : 500)}${service.made}`;
        const endsAt = nowOf() + lifeMs;
        service.tokens.set(text, { installation, endsAt });
        return json(
          response,
          201,
          { token: text, expires_at: new Date(endsAt).toISOString(), permissions: {} },
          dated(),
        );
      }
      const known = service.tokens.get(token);
      if (token.startsWith("ghs_") && (!known || known.endsAt <= nowOf()))
        return refuse(response, 401, "Bad credentials");
      if (known && service.suspended.has(known.installation))
        return refuse(response, 403, "This installation has been suspended");
      return service.answer(known?.installation ?? 0, asked, response, count);
    },
    { tokens: [], ...options, env: { APP_ID: "4711", APP_PRIVATE_KEY: appKey, ...options.env } },
  );

  for (const [id, account] of [
    [1, "octo"],
    [2, "hexa"],
  ] as const) {
    await world.ctx.db.query(sql`
      insert into installations (id, account, account_type, repository_selection, permissions, events)
        values (${id}, ${account}, 'Organization', 'all', '{"metadata":"read","issues":"read"}', '[]')`);
    await world.ctx.db.query(sql`
      insert into installation_repositories (repository_id, installation_id, full_name, page)
        values (${id * 10}, ${id}, ${`${account}/one`}, 1)`);
  }
  return Object.assign(world, {
    service,
    asApp: () =>
      world.asked.map(
        ({ token, url }) => `${token.startsWith("ghs_") ? (service.tokens.get(token)?.installation ?? "?") : 0} ${url}`,
      ),
  });
}

/** What is wrong with a signature, in the words of upstream's answer. */
function jwtProblem(text: string, key: typeof publicKey, now: number): string | null {
  const [head = "", body = "", signature = ""] = text.split(".");
  const signed = Buffer.from(`${head}.${body}`);
  if (signature === "" || !verify("sha256", signed, key, Buffer.from(signature, "base64url")))
    return "A JSON web token could not be decoded";
  const { iat, exp, iss } = JSON.parse(Buffer.from(body, "base64url").toString()) as Record<string, number>;
  if (String(iss) !== "4711") return "Integration not found";
  const nowS = now / 1_000;
  if (iat === undefined || iat > nowS)
    return "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued";
  if (exp === undefined || exp <= nowS)
    return "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires";
  return exp > nowS + 600 ? "'Expiration time' claim ('exp') is too far in the future" : null;
}
