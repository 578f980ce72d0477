import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { debianProgram } from "../../test/support/debian.ts";
import { freePort } from "../free-port.ts";
import { type Program, startCommand, startProgram } from "../processes.ts";

/** What stands between clients and upstream. */
export interface Standing extends AsyncDisposable {
  url: string;
  /** Its first process, for its memory and processor time. Null: clients ask upstream itself. */
  pid: number | null;
}

export interface Upstream {
  url: string;
  token: string;
  /** What the clients read. */
  repositories: readonly string[];
}

const PATIENCE_MS = 120_000;
const LOOK_MS = 50;

/** Each is given upstream, and resolves once it answers. */
export const SERVERS: Record<string, (upstream: Upstream) => Promise<Standing>> = {
  upstream: async ({ url }) => ({ url, pid: null, [Symbol.asyncDispose]: async () => {} }),
  nginx: (upstream) => openDebian("/usr/sbin/nginx", "nginx-light", upstream, nginx),
  squid: (upstream) => openDebian("/usr/sbin/squid", "squid", upstream, squid),
  varnish: (upstream) => openDebian("/usr/sbin/varnishd", "varnish", upstream, varnish),
  tain: openTain,
};

interface Setting {
  folder: string;
  port: number;
  /** Of upstream. */
  host: string;
}

interface Configured {
  file: string;
  text: string;
  args: string[];
}

/**
 * Keeps answers for a second, then asks whether they have changed; one asks for all who wait. Upstream's own word, that
 * an answer is good for a minute, would have every answer behind. Where upstream fails the kept answer is given.
 */
function nginx({ folder, port, host }: Setting): Configured {
  const file = join(folder, "nginx.conf");
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const text = `daemon off;
worker_processes auto;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log warn;
events { worker_connections 2048; }
http {
  access_log off;
  ${paths.map((name) => `${name}_temp_path ${folder}/${name};`).join("\n  ")}
  proxy_cache_path ${folder}/cache levels=1:2 keys_zone=answers:50m inactive=2h max_size=1g use_temp_path=off;
  upstream service { server ${host}; keepalive 64; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host ${host};
      proxy_cache answers;
      proxy_cache_key "$request_uri $http_accept $http_authorization";
      proxy_ignore_headers Cache-Control Expires Vary X-Accel-Expires Set-Cookie;
      proxy_cache_valid 200 1s;
      proxy_cache_revalidate on;
      proxy_cache_lock on;
      proxy_cache_use_stale updating error timeout http_500 http_502 http_503 http_504 http_403 http_429;
      proxy_connect_timeout 2s;
    }
  }
}
`;
  return { file, text, args: ["-p", folder, "-c", file, "-e", join(folder, "error.log")] };
}

/**
 * Upstream calls its answers private. Told to keep them all the same, Squid asks each time whether they have changed (by
 * `Last-Modified`, which lists lack), and gives none while upstream is away. It keys by `Vary`, so that each token has
 * answers of its own.
 */
function squid({ folder, port, host }: Setting): Configured {
  const file = join(folder, "squid.conf");
  const [name, upstreamPort] = host.split(":");
  const text = `http_port 127.0.0.1:${port} accel defaultsite=${host} no-vhost
cache_peer ${name} parent ${upstreamPort} 0 no-query no-digest originserver login=PASSTHRU connect-timeout=2 name=service
http_access allow all
never_direct allow all
cache_peer_access service allow all
cache_mem 256 MB
cache_log ${folder}/cache.log
access_log none
cache_store_log none
pid_filename ${folder}/squid.pid
coredump_dir ${folder}
collapsed_forwarding on
refresh_pattern . 0 0% 1440 ignore-private
max_stale 1 day
shutdown_lifetime 0 seconds
pinger_enable off
`;
  return { file, text, args: ["-N", "-f", file] };
}

/** Keeps answers for a second, then asks whether they have changed. Where upstream fails the kept answer is given. */
function varnish({ folder, port, host }: Setting): Configured {
  const file = join(folder, "default.vcl");
  const [name, upstreamPort] = host.split(":");
  const text = `vcl 4.1;
backend service { .host = "${name}"; .port = "${upstreamPort}"; .connect_timeout = 2s; }
sub vcl_recv {
  if (req.method != "GET" && req.method != "HEAD") { return (pass); }
  if (req.restarts == 0) { set req.grace = 0s; }
  return (hash);
}
sub vcl_hash {
  hash_data(req.url);
  hash_data(req.http.Accept);
  hash_data(req.http.Authorization);
  return (lookup);
}
sub vcl_backend_response {
  if (beresp.status != 200) { return (fail); }
  unset beresp.http.Vary;
  set beresp.ttl = 1s;
  set beresp.grace = 2h;
  set beresp.keep = 2h;
  return (deliver);
}
sub vcl_synth {
  if (resp.status == 503 && req.restarts == 0) { set req.grace = 2h; return (restart); }
}
sub vcl_deliver {
  if (resp.status == 503 && req.restarts == 0) { set req.grace = 2h; return (restart); }
}
`;
  const work = join(folder, "work");
  return { file, text, args: ["-F", "-n", work, "-f", file, "-a", `127.0.0.1:${port}`, "-s", "malloc,256m"] };
}

async function openDebian(
  path: string,
  name: string,
  { url, token, repositories }: Upstream,
  configure: (setting: Setting) => Configured,
): Promise<Standing> {
  const found = await debianProgram(path, name);
  if ("missing" in found) throw new Error(found.missing);
  const resources = new AsyncDisposableStack();
  try {
    const folder = await mkdtemp(join(tmpdir(), `tain-bench-${name}-`));
    resources.defer(() => rm(folder, { recursive: true, force: true }));
    // Each works as a user of its own.
    await chmod(folder, 0o777);
    await mkdir(join(folder, "cache"), { mode: 0o777 });
    await chmod(join(folder, "cache"), 0o777);
    const port = await freePort();
    const { file, text, args } = configure({ folder, port, host: new URL(url).host });
    await writeFile(file, text);
    const program = resources.use(startCommand(found.path, args, { onLine: () => {} }));
    const at = `http://127.0.0.1:${port}`;
    await untilAnswered(`${at}/repos/${repositories[0]}`, token, program);
    return { url: at, pid: program.pid, [Symbol.asyncDispose]: () => resources.disposeAsync() };
  } catch (error) {
    await resources.disposeAsync();
    throw error;
  }
}

/** As its users start it: `npm start`, with stores of its own, and webhooks from upstream. */
async function openTain({ url: upstream, token, repositories }: Upstream): Promise<Standing> {
  const resources = new AsyncDisposableStack();
  try {
    const home = await mkdtemp(join(tmpdir(), "tain-bench-instead-"));
    resources.defer(() => rm(home, { recursive: true, force: true }));
    const url = `http://127.0.0.1:${await freePort()}`;
    const isUp = Promise.withResolvers<void>();
    const program = resources.use(
      startProgram(
        "../scripts/run.mjs",
        {
          ...{ HOME: home, TAIN_HOME: home, HOST: "127.0.0.1", PORT: new URL(url).port, PUBLIC_URL: url },
          ...{ UPSTREAM_URL: upstream, UPSTREAM_TOKEN: token, REPOSITORIES: repositories.join() },
        },
        (line) => {
          if (line.startsWith("{") && JSON.parse(line).event === "up") isUp.resolve();
        },
        ["start", "--json"],
      ),
    );
    await Promise.race([isUp.promise, ended(program), timeOut()]);
    await untilAnswered(`${url}/repos/${repositories[0]}`, token, program);
    return { url, pid: program.pid, [Symbol.asyncDispose]: () => resources.disposeAsync() };
  } catch (error) {
    await resources.disposeAsync();
    throw error;
  }
}

async function untilAnswered(url: string, token: string, program: Program): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, "user-agent": "bench" };
  const over = new AbortController();
  const answered = async () => {
    while (!over.signal.aborted) {
      const answer = await fetch(url, { headers }).catch(() => null);
      await answer?.arrayBuffer();
      if (answer?.status === 200) return;
      await delay(LOOK_MS);
    }
  };
  try {
    await Promise.race([answered(), ended(program), timeOut(over.signal)]);
  } finally {
    over.abort();
  }
}

async function ended(program: Program): Promise<never> {
  throw new Error(await program.ended);
}

async function timeOut(signal?: AbortSignal): Promise<void> {
  await delay(PATIENCE_MS, undefined, { signal, ref: false }).catch(() => {});
  if (!signal?.aborted) throw new Error(`It did not answer within ${PATIENCE_MS / 1_000} s`);
}
