import { CALLER_SETTINGS } from "./caller-settings.ts";
import { ALL_PARTS, MIRROR_PARTS } from "./parts.ts";
import { redisUrl } from "./redis-address.ts";
import { appId, privateKey, secret, secrets, tokens } from "./secrets.ts";
import type { Setting } from "./setting.ts";
import {
  allowedTargets,
  apiUrl,
  bodiesSize,
  count,
  duration,
  httpUrl,
  oneOf,
  parts,
  path,
  port,
  prefix,
  proxies,
  share,
  sizeOrNone,
  span,
  timeout,
  trackedPatterns,
  urlOf,
  urlsOf,
  word,
} from "./values.ts";

/** Every setting, in the order in which the documentation lists them. */
export const SETTINGS = {
  port: { name: "PORT", read: port, default: "8080", about: "The port of the API, the receiver and the probes." },
  metricsPort: {
    name: "METRICS_PORT",
    read: port,
    about:
      "The port at which a worker or the scheduler shows its metrics (`/-/metrics`); each needs its own on one machine. Unset: none. A web process shows them at `PORT`.",
  },
  processes: {
    name: "PROCESSES",
    read: oneOf("one", "separate"),
    default: "one",
    about:
      "How `npm start` runs web, worker and scheduler: in `one` process, which takes least memory and shows all metrics at `PORT`, or `separate`, which uses several cores. The Procfile's are separate.",
  },
  host: { name: "HOST", read: word, default: "0.0.0.0", about: "The address to listen on." },
  publicUrl: {
    name: "PUBLIC_URL",
    read: httpUrl,
    about:
      "The address by which callers reach the API, e.g. `https://tain.example.com`. Unset: each answer uses the `Host` of its request.",
  },
  trustedProxies: {
    name: "TRUSTED_PROXIES",
    read: proxies,
    default: "",
    about:
      "The proxies in front of Tain, comma separated: addresses, networks (`10.0.0.0/8`), or `loopback`, `linklocal`, `uniquelocal`. Only their `X-Forwarded-For`, `-Proto` and `-Host` are believed.",
  },
  databaseUrl: {
    name: "DATABASE_URL",
    required: true,
    read: urlOf("postgres:", "postgresql:"),
    about:
      "The Postgres of the mirror, e.g. `postgres://user:password@host:5432/tain`. `npm start` brings one when it is unset.",
    secret: true,
  },
  databaseDirectUrl: {
    name: "DATABASE_DIRECT_URL",
    read: urlOf("postgres:", "postgresql:"),
    about:
      "The same Postgres past a pooler that lends a connection for one transaction. Migrations and subscriptions use it.",
    secret: true,
  },
  databaseReplicaUrls: {
    name: "DATABASE_REPLICA_URLS",
    read: urlsOf("postgres:", "postgresql:"),
    default: "",
    about:
      "Streaming replicas of the same Postgres, comma separated. Web processes send callers' reads there while a replica shows all that the primary does (docs/scale.md).",
    secret: true,
  },
  edgeOf: {
    name: "EDGE_OF",
    read: httpUrl,
    about:
      "The address of the API at the centre. It makes a web process an edge (docs/scale.md), which reads from the replica at `DATABASE_URL` and passes all else on. Workers and schedulers refuse to start with it.",
  },
  databaseConnections: {
    name: "DATABASE_CONNECTIONS",
    read: count,
    default: "10",
    about: "The most connections each process opens to Postgres. A web process opens others for reads.",
  },
  readConnections: {
    name: "READ_CONNECTIONS",
    read: count,
    default: "6",
    about:
      "The most connections a web process opens to Postgres for callers' reads. One thread makes the answers, so more help only where Postgres waits for a slow disk.",
  },
  readTimeoutMs: {
    name: "READ_TIMEOUT",
    read: timeout,
    default: "10s",
    about:
      "How long a statement of a caller's read may take in Postgres, and a search or filtered list half as long. Then the answer is 502.",
  },
  searchConnections: {
    name: "SEARCH_CONNECTIONS",
    read: count,
    default: "2",
    about:
      "The most connections a web process opens for searches, and for lists that filter by labels, people or texts. Each caller's searches run one at a time.",
  },
  redisUrl: {
    name: "REDIS_URL",
    required: true,
    read: redisUrl,
    about:
      "The Redis of queues and quota: `redis://host:6379/0`, Sentinels (`redis-sentinel://host:26379,host:26379/0?master_name=NAME`) or a Cluster (`redis-cluster://host:6379,host:6379`); docs/scale.md has all forms. `npm start` brings one when it is unset.",
    secret: true,
  },
  redisPrefix: {
    name: "REDIS_PREFIX",
    read: prefix,
    default: "{tain}",
    about:
      "What every key and queue in Redis begins with. The braces keep the keys of one Tain on one node of a Cluster. Several Tains on one server need different ones.",
  },
  upstreamUrl: {
    name: "UPSTREAM_URL",
    read: apiUrl,
    required: true,
    about:
      "The REST address of the service to mirror: `https://api.github.com`, or `https://HOST/api/v3` for an enterprise server.",
  },
  mirror: {
    name: "MIRROR",
    read: parts,
    default: "",
    about: `What to mirror of every repository beside issues and pull requests, comma separated: ${MIRROR_PARTS.map((part) => `\`${part}\``).join(", ")}, or \`${ALL_PARTS}\` (docs/quota.md). \`tain add owner/name --mirror checks\` says so of one repository.`,
  },
  upstreamTokens: {
    name: "UPSTREAM_TOKEN",
    read: tokens,
    default: "",
    about:
      "A token for upstream, or several, comma separated; requests use the one with the most quota left. Required unless `APP_ID` is set.",
    secret: true,
  },
  appId: {
    name: "APP_ID",
    read: appId,
    about: "The id, or the client id, of a GitHub App to mirror with, beside tokens or instead of them.",
  },
  appPrivateKey: {
    name: "APP_PRIVATE_KEY",
    read: privateKey,
    about: "The App's private key: the text of the `.pem` file, with `\\n` for line breaks if need be, or in base64.",
    secret: true,
  },
  quotaShare: {
    name: "QUOTA_SHARE",
    read: share,
    default: "1",
    about:
      "How much of each token's quota Tain may use, above 0 up to 1: `0.5` leaves half of it to others with the same token.",
  },
  validatorBodiesBytes: {
    name: "ETAG_PAGES_SIZE",
    read: sizeOrNone,
    default: "4GB",
    about:
      "How much of the database the pages of lists may take, as `500MB` or `4GB`: with them lists stay free of charge after a token was replaced. Beyond it those unused for longest are deleted. 0 stores none.",
  },
  repositories: {
    name: "REPOSITORIES",
    read: trackedPatterns,
    default: "",
    about:
      "What to mirror: `owner/name` or `owner/*`, comma separated; `!owner/name` is excepted. `tain add` does the same at run time. With a GitHub App, empty mirrors everything it is installed on.",
  },
  webhookSecrets: {
    name: "WEBHOOK_SECRET",
    read: secrets,
    required: true,
    about:
      "The master secret, from which each hook's own secret is made; no hook gets it. Several, comma separated: the first makes the secrets of new hooks, and all verify.",
    secret: true,
  },
  encryptionKeys: {
    name: "ENCRYPTION_KEY",
    read: secrets,
    about:
      "The secret that encrypts targets' secrets and operators' commands. Several, comma separated, the newest first: the first encrypts, and all decrypt. Unset: `WEBHOOK_SECRET` does it.",
    secret: true,
  },
  webhookBodiesBytes: {
    name: "WEBHOOK_BODIES_SIZE",
    read: bodiesSize,
    default: "128MB",
    about:
      "How much memory the bodies of all requests under way may take in each web process, at least `32MB`; those of one caller a quarter of it. Beyond it the slowest are answered 503.",
  },
  webhookBodyTimeoutMs: {
    name: "WEBHOOK_BODY_TIMEOUT",
    read: timeout,
    default: "20s",
    about: "How long the body of a request may take to arrive. Then it is answered 408.",
  },
  deliveryRetentionMs: {
    name: "DELIVERY_RETENTION",
    read: span,
    default: "7d",
    about: "How long settled deliveries are kept in the inbox.",
  },
  eventsMadeAfterMs: {
    name: "EVENTS_MADE_AFTER",
    read: duration,
    default: "1m",
    about:
      "How long a change that was found without a webhook waits for it. Then a synthetic event is made, for targets and the feed. `0s` where upstream sends no webhooks.",
  },
  targetsAllowed: {
    name: "TARGETS_ALLOWED",
    read: allowedTargets,
    default: "",
    about:
      "Where events may be sent besides the public Internet and the ports 80, 443, 8080 and 8443: host names, addresses or networks (`10.0.0.0/8`), comma separated.",
  },
  targetsProxy: {
    name: "TARGETS_PROXY",
    read: urlOf("http:", "https:"),
    secret: true,
    about:
      "The proxy through which events are sent (CONNECT): `http://` or `https://`, with user name, password and port. It has to refuse the addresses inside your network.",
  },
  targetsRetryForMs: {
    name: "TARGETS_RETRY_FOR",
    read: span,
    default: "3d",
    about:
      "How long an event that its target does not accept is retried. Then it is given up, or the target is disabled if it accepted nothing in that time.",
  },
  writeRetentionMs: {
    name: "WRITE_RETENTION",
    read: span,
    default: "90d",
    about: "How long the record of writes (`tain writes list`) is kept.",
  },
  auditLogRetentionMs: {
    name: "AUDIT_LOG_RETENTION",
    read: span,
    default: "365d",
    about: "How long the audit log (`tain audit-log`) is kept, with at most 100,000 rows of each kind of act.",
  },
  catchUpIntervalMs: {
    name: "CATCH_UP_INTERVAL",
    read: span,
    default: "5m",
    about:
      "Where webhooks of a repository get lost, its catch-ups lie half of this apart at least, and its comments are read at three quarters. Each gets a catch-up in 144 times this.",
  },
  sweepIntervalMs: {
    name: "SWEEP_INTERVAL",
    read: span,
    default: "4m",
    about:
      "How often all repositories are asked at once whether anything has changed. Four times as often where webhooks were lost lately.",
  },
  deliveryCheckIntervalMs: {
    name: "DELIVERY_CHECK_INTERVAL",
    read: span,
    default: "10m",
    about: "How often upstream's list of deliveries to our webhooks is compared with the inbox.",
  },
  auditPeriodMs: {
    name: "AUDIT_PERIOD",
    read: span,
    default: "24h",
    about: "Each repository is compared with upstream in full, and repaired, once in this time.",
  },
  ...CALLER_SETTINGS,
  operatorToken: {
    name: "OPERATOR_TOKEN",
    read: secret,
    about:
      "Signs in to the page at `/-/`, opens `/-/status` and `/-/metrics`, and has `/-/ready` say why something is missing (`Authorization: Bearer …`). Unset: they open to nobody; `npm start` makes one.",
    secret: true,
  },
  tracesUrl: {
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    read: httpUrl,
    about:
      "Where web and workers send their traces (OTLP over HTTP, as `http://collector:4318`; docs/monitoring.md). Unset: nothing is traced.",
  },
  home: {
    name: "TAIN_HOME",
    read: path,
    default: ".tain",
    about: "The directory of local state: embedded stores, `instance.json`.",
  },
  shutdownMs: {
    name: "SHUTDOWN_TIMEOUT",
    read: timeout,
    default: "25s",
    about: "How long a process may take to finish what it has begun when it is told to stop.",
  },
  logLevel: {
    name: "LOG_LEVEL",
    read: oneOf("silent", "fatal", "error", "warn", "info", "debug", "trace"),
    default: "info",
    about: "The least severe level that is logged.",
  },
} satisfies Record<string, Setting<unknown>>;
