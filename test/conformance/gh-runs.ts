import { execFile, spawnSync } from "node:child_process";
import { lookup } from "node:dns/promises";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openWeb } from "../../src/web.ts";
import type { ApiWorld } from "../api/api-world.ts";

/** What one run of `gh` printed, and with which status it ended. */
interface Ran {
  status: number;
  out: string;
  err: string;
}

export type Gh = (args: string[], options?: { token?: string; host?: string; cwd?: string }) => Promise<Ran>;

/** For this host `gh` speaks plain http, and expects the API at `api.`. */
export const DEVELOPMENT = "github.localhost";
/** Any other host is an enterprise server to it: `/api/v3` and `/api/graphql`. */
export const ENTERPRISE = "ghe.example.test";

export const hasGh = spawnSync("gh", ["--version"]).status === 0;

/**
 * `gh` as it is installed, with a configuration of its own. It reaches the mirror by a Unix socket, which it can be
 * told to use for whatever host: so no name needs to resolve, no port be free, and an enterprise host needs no
 * certificate.
 */
export async function openGh(world: Pick<ApiWorld, "ctx" | "token">, resources: AsyncDisposableStack): Promise<Gh> {
  const home = await mkdtemp(join(tmpdir(), "tain-gh-"));
  resources.defer(() => rm(home, { recursive: true, force: true }));
  const socket = join(home, "socket");
  const web = openWeb(world.ctx);
  resources.defer(() => web.close());
  await web.listen({ path: socket });
  return await ghThrough(socket, { home, token: world.token });
}

/** `gh` that reaches whatever host by a Unix socket. */
export async function ghThrough(socket: string, { home, token }: { home: string; token: string }): Promise<Gh> {
  await writeFile(join(home, "config.yml"), `http_unix_socket: ${socket}\n`);
  return runIn(home, token);
}

/**
 * The same at the port that `gh` expects, without any configuration; or the reason why this machine does not let it be
 * taken. Where `api.github.localhost` has no address, the mirror stands as the proxy that leads there.
 */
export async function openGhAtPort80(world: ApiWorld, resources: AsyncDisposableStack): Promise<Gh | string> {
  const web = openWeb(world.ctx);
  resources.defer(() => web.close());
  try {
    await web.listen({ host: "127.0.0.1", port: 80 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EACCES" && code !== "EADDRINUSE") throw error;
    return `127.0.0.1:80 cannot be bound: ${code}`;
  }
  const home = await mkdtemp(join(tmpdir(), "tain-gh-"));
  resources.defer(() => rm(home, { recursive: true, force: true }));
  return runIn(home, world.token, (await isLocal(`api.${DEVELOPMENT}`)) ? {} : { HTTP_PROXY: "http://127.0.0.1:80" });
}

async function isLocal(name: string): Promise<boolean> {
  try {
    return (await lookup(name, { family: 4 })).address === "127.0.0.1";
  } catch (error) {
    if (/^(ENOTFOUND|EAI_AGAIN)$/.test((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}

function runIn(home: string, usual: string, more: Record<string, string> = {}): Gh {
  return (args, { token = usual, host = DEVELOPMENT, cwd } = {}) =>
    new Promise((resolve) => {
      const env = {
        PATH: process.env.PATH,
        HOME: home,
        GH_CONFIG_DIR: home,
        GH_HOST: host,
        GH_NO_UPDATE_NOTIFIER: "1",
        GH_PROMPT_DISABLED: "1",
        NO_COLOR: "1",
        TZ: "UTC",
        ...more,
        ...(host.endsWith("github.localhost") ? { GH_TOKEN: token } : { GH_ENTERPRISE_TOKEN: token }),
      };
      execFile(
        "gh",
        args,
        { env, timeout: 60_000, maxBuffer: 64 * 1024 * 1024, ...(cwd && { cwd }) },
        (error, out, err) => {
          const code = error?.code;
          resolve({ status: error === null ? 0 : typeof code === "number" ? code : 1, out, err });
        },
      );
    });
}
