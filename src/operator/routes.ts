import type { Logins } from "../api/callers/logins.ts";
import { ApiFault } from "../api/dialect/fault.ts";
import { isSameSecret } from "../config/same-secret.ts";
import type { Context } from "../context.ts";
import { reasonOf } from "../failure.ts";
import type { Health, HealthWatch } from "../health/health.ts";
import { HttpError } from "../http/errors.ts";
import type { Exchange } from "../http/exchange.ts";
import { JSON_TYPE, json, type Reply } from "../http/reply.ts";
import type { Handler, Route } from "../http/router.ts";
import type { Json } from "../json.ts";
import { JsonBoundError, parseSent } from "../sent-json.ts";
import { noteAct } from "../work/audit-log.ts";
import { askForCommand, commandProgress } from "./commands.ts";
import { files, fileTagOf, withTag } from "./files.ts";
import { browsePage, GUARDS, refusedPage, shell, signInPage, unsetPage } from "./pages.ts";
import { isFromHere, isSecure, type Session, Sessions } from "./session.ts";
import { VIEWS } from "./views.ts";

/** The largest body of the sign-in form, which holds a token. */
const FORM_BYTES = 4_096;
const COMMAND_BYTES = 256 * 1024;
const NOT_SENT_HERE = "This form was not sent by a page of this host, so nothing was done.";

/** What the page needs if OPERATOR_TOKEN is set. */
interface Door {
  ctx: Context;
  sessions: Sessions;
  operatorToken: string;
  logins: Pick<Logins, "operators">;
  watch: Pick<HealthWatch, "health">;
}

/** A handler for an operator who is signed in. */
type SignedHandler = (
  exchange: Exchange,
  signed: { session: Session; sessions: Sessions },
  params: Record<string, string>,
) => Promise<Reply>;

/** The routes of the operator's page at `/-/`, and of the data for its scripts. */
export function operatorPage(ctx: Context, { logins, watch }: Pick<Door, "logins" | "watch">): Route[] {
  const { operatorToken } = ctx.config;
  const door = operatorToken && { ctx, sessions: new Sessions(ctx, operatorToken), operatorToken, logins, watch };
  const get = (path: string, handle: Handler): Route => ({ method: "GET", path, handle });
  const post = (path: string, handle: Handler): Route => ({ method: "POST", path, handle });
  const asOperator = (handle: SignedHandler): Handler => (door ? behind(door, handle) : async () => notSignedIn());
  return [
    files(),
    get("/-/browse", () => browsePage({ upstream: ctx.config.upstreamUrl })),
    get("/-", () => seeOther("/-/")),
    get("/-/", async (exchange) => (door ? await home(door, exchange) : unsetPage())),
    post("/-/session", async (exchange) => (door ? await signIn(door, exchange) : unsetPage())),
    post("/-/session/end", async (exchange) => (door ? await signOut(door, exchange) : seeOther("/-/"))),
    get(
      "/-/operator/:view",
      asOperator((exchange, _signed, { view = "" }) => viewReply({ ctx, watch }, exchange, view)),
    ),
    post(
      "/-/operator/commands",
      asOperator(async (exchange, signed) => {
        refuseStrangers(exchange, signed, ctx.config.publicUrl);
        const by = { session: sessionName(signed.session), address: exchange.address };
        return json(202, await askForCommand(ctx, await readJsonBody(exchange), by), {
          ...GUARDS,
          "Cache-Control": "no-store",
        });
      }),
    ),
    get(
      "/-/operator/commands/:id",
      asOperator(async (_exchange, _signed, { id = "" }) =>
        json(200, await commandProgress(ctx, id), { ...GUARDS, "Cache-Control": "no-store" }),
      ),
    ),
  ];
}

/** Refuses everybody but a signed-in operator. */
function behind({ ctx, sessions, watch }: Door, handle: SignedHandler): Handler {
  return async (exchange, { params }) => {
    const session = await sessions.find(exchange);
    if (!session) return notSignedIn();
    try {
      return await handle(exchange, { session, sessions }, params);
    } catch (error) {
      if (error instanceof HttpError) return messageReply(error.status, error.message);
      return failed(ctx, error, await watch.health());
    }
  };
}

async function home({ ctx, sessions }: Door, exchange: Exchange): Promise<Reply> {
  const session = await sessions.find(exchange);
  return session ? shell({ word: session.word, upstream: ctx.config.upstreamUrl }) : signInPage(200, null);
}

async function signIn({ ctx, sessions, operatorToken, logins }: Door, exchange: Exchange): Promise<Reply> {
  if (!isFromHere(exchange, ctx.config.publicUrl)) return refusedPage(403, NOT_SENT_HERE);
  const given = (await readFormBody(exchange)).get("token")?.trim() ?? "";
  try {
    const isRight = async () => (isSameSecret(given, operatorToken) ? true : null);
    if (await logins.operators(exchange.address, isRight)) {
      const { cookie, session } = sessions.begin(isSecure(exchange));
      await noteSession(ctx, exchange, "session.sign_in", session);
      return seeOther("/-/", { "Set-Cookie": cookie });
    }
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    const { "Retry-After": seconds = "60" } = error.headers;
    const says = `Too many wrong tokens came from your address. Try again in ${seconds} seconds.`;
    return signInPage(error.status, says, { "Retry-After": seconds });
  }
  ctx.log.warn({ address: exchange.address }, "A sign-in as the operator failed");
  return signInPage(401, "That is not the operator's token. Compare it with OPERATOR_TOKEN, and try again.");
}

async function signOut({ ctx, sessions }: Door, exchange: Exchange): Promise<Reply> {
  const session = await sessions.find(exchange);
  if (!session) return seeOther("/-/");
  const word = (await readFormBody(exchange)).get("word") ?? "";
  if (!isFromHere(exchange, ctx.config.publicUrl) || !sessions.isOurs(exchange, session, word))
    return refusedPage(403, NOT_SENT_HERE);
  try {
    const cookie = await sessions.end(session, isSecure(exchange));
    await noteSession(ctx, exchange, "session.sign_out", session);
    return seeOther("/-/", { "Set-Cookie": cookie });
  } catch (error) {
    ctx.log.warn({ reason: reasonOf(error) }, "A session could not be ended");
    return refusedPage(503, "Redis does not answer, so the session goes on. Close the browser, or try again soon.");
  }
}

/** Enters a sign-in. Operators need the page most while Postgres is away, so they are let in without an entry then. */
async function noteSession(
  ctx: Context,
  { address }: Exchange,
  action: string,
  session: Pick<Session, "nonce">,
): Promise<void> {
  try {
    await noteAct(ctx, { actor: { kind: "operator", name: sessionName(session), address }, action }, "done");
  } catch (error) {
    ctx.log.error({ err: error, address, action }, "This could not be entered in the audit log");
  }
}

/** Names a session in the audit log. Its cookie needs a signature as well. */
function sessionName({ nonce }: Pick<Session, "nonce">): string {
  return nonce.slice(0, 8);
}

/** @throws HttpError when there is no such view */
async function viewReply(
  { ctx, watch }: Pick<Door, "ctx" | "watch">,
  { search, headers }: Exchange,
  view: string,
): Promise<Reply> {
  const load = Object.hasOwn(VIEWS, view) ? VIEWS[view] : undefined;
  if (!load) throw new HttpError(404, "There is no such view");
  const [shown, health] = await Promise.all([load(ctx, new URLSearchParams(search)), watch.health()]);
  const body = JSON.stringify({ ...shown, health });
  return withTag(fileTagOf(body), headers["if-none-match"], {
    status: 200,
    headers: { ...GUARDS, "Content-Type": JSON_TYPE, "Cache-Control": "private, no-cache", Vary: VARIES },
    body,
    isEncodable: true,
  });
}

/**
 * Makes sure that a changing request comes from the page's own scripts. @throws HttpError for a request of another page
 * or program
 */
function refuseStrangers(
  exchange: Exchange,
  { session, sessions }: Parameters<SignedHandler>[1],
  publicUrl: string | null,
): void {
  if (!isFromHere(exchange, publicUrl) || !sessions.isOurs(exchange, session))
    throw new HttpError(403, "This request was not made by the page, so nothing was done. Reload it, and try again");
}

const VARIES = "Cookie, Accept-Encoding";

function notSignedIn(): Reply {
  return messageReply(401, "You are not signed in, or the session is over: sign in again");
}

function messageReply(status: number, message: string): Reply {
  return json(status, { message }, { ...GUARDS, "Cache-Control": "no-store" });
}

/** Answers a failed view or action with the reason, which the operator may see. */
function failed(ctx: Context, error: unknown, health: Health): Reply {
  ctx.log.warn({ reason: reasonOf(error) }, "The operator's page cannot be answered");
  const [status, message] =
    health.state === "problem"
      ? [503, "This cannot be told at the moment"]
      : [500, `That failed: ${reasonOf(error)}. The log of web says more`];
  return json(status, { message, health }, { ...GUARDS, "Cache-Control": "no-store" });
}

function seeOther(location: string, headers: Record<string, string> = {}): Reply {
  return {
    status: 303,
    headers: { Location: location, "Cache-Control": "no-store", ...GUARDS, ...headers },
    body: null,
  };
}

/** Reads a JSON body. Requiring its content type stops forms of other pages. @throws HttpError for any other body */
async function readJsonBody(exchange: Exchange): Promise<Json> {
  if (!/^application\/json *(;|$)/i.test(exchange.headers["content-type"] ?? ""))
    throw new HttpError(415, "JSON is expected here");
  using body = await exchange.body(COMMAND_BYTES);
  try {
    return parseSent(body.bytes.toString("utf8"));
  } catch (cause) {
    if (cause instanceof JsonBoundError) throw new HttpError(400, cause.message, { cause });
    throw new HttpError(400, "This is no JSON", { cause });
  }
}

/** @throws HttpError for a body that is not a form's */
async function readFormBody(exchange: Exchange): Promise<URLSearchParams> {
  const type = exchange.headers["content-type"] ?? "";
  if (!/^application\/x-www-form-urlencoded *(;|$)/i.test(type)) throw new HttpError(415, "A form is expected here");
  using body = await exchange.body(FORM_BYTES);
  return new URLSearchParams(body.bytes.toString("utf8"));
}
