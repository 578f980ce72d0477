import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { parseEnv } from "node:util";
import { describe, expect, test } from "vitest";
import { configurationDocs } from "../scripts/generate/configuration.ts";
import { SETTINGS } from "../src/config/settings.ts";
import { duration } from "../src/config/values.ts";
import { ConfigError, parseConfig, withSecretFiles } from "../src/config.ts";
import { openLog, readable } from "../src/operations/log.ts";

const least = {
  DATABASE_URL: "postgres://tain:database-password@db.example:5432/tain",
  REDIS_URL: "rediss://:redis-pass%2Bword@redis.example:6379/0",
  UPSTREAM_URL: "https://api.github.com",
  UPSTREAM_TOKEN: "upstream-token-one,upstream-token-two",
  WEBHOOK_SECRET: "first-webhook-secret",
};

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const pem = privateKey.export({ type: "pkcs1", format: "pem" }).toString();

const problemsOf = (env: Record<string, string>): string[] => {
  try {
    parseConfig(env);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message
      .split("\n")
      .slice(1)
      .map((line) => line.trim());
  }
  return [];
};

test("with only what is required, everything else has its documented default", () => {
  const config = parseConfig(least);
  expect(config).toMatchObject({
    port: 8080,
    publicUrl: null,
    operatorToken: null,
    redisPrefix: "{tain}",
    repositories: [],
    upstreamTokens: ["upstream-token-one", "upstream-token-two"],
    webhookSecrets: ["first-webhook-secret"],
    deliveryRetentionMs: 7 * 86_400_000,
    catchUpIntervalMs: 300_000,
    sweepIntervalMs: 240_000,
    deliveryCheckIntervalMs: 600_000,
    auditPeriodMs: 86_400_000,
    shutdownMs: 25_000,
    rateLimitUser: 5_000,
    rateLimitAnonymous: 60,
    rateLimitGraphql: 5_000,
    logLevel: "info",
  });
  expect(isAbsolute(config.home)).toBe(true);
});

test("every problem is told at once, each by the name of its variable", () => {
  const problems = problemsOf({ PORT: "many", LOG_LEVEL: "loud", REPOSITORIES: "octo", OPERATOR_TOKEN: "short" });
  expect(problems.map((problem) => problem.split(" ")[0])).toEqual([
    "PORT",
    "DATABASE_URL",
    "REDIS_URL",
    "UPSTREAM_URL",
    "UPSTREAM_TOKEN",
    "REPOSITORIES",
    "WEBHOOK_SECRET",
    "OPERATOR_TOKEN",
    "LOG_LEVEL",
  ]);
});

test("a variable that is empty or blank counts as not set", () => {
  expect(parseConfig({ ...least, PORT: "", LOG_LEVEL: "  " })).toMatchObject({ port: 8080, logLevel: "info" });
  expect(problemsOf({ ...least, DATABASE_URL: " " })).toEqual(["DATABASE_URL is not set"]);
});

describe("a name that is nearly a setting's is told", () => {
  test.each([
    ["UPSTREAM_TOKNE", "UPSTREAM_TOKEN"],
    ["UPSTREAM_TOKENS", "UPSTREAM_TOKEN"],
    ["WEBHOK_SECRET", "WEBHOOK_SECRET"],
    ["WEBHOOK-SECRET", "WEBHOOK_SECRET"],
    ["Operator_Token", "OPERATOR_TOKEN"],
    ["TRUSTED_PROXYES", "TRUSTED_PROXIES"],
  ])("%s instead of %s", (wrong, right) => {
    const env: Record<string, string> = { ...least, [wrong]: "some-value" };
    if (right in least) delete env[right];
    expect(problemsOf(env)).toContain(`${wrong} is no setting: did you mean ${right}?`);
  });

  test("what others in the same environment are told is none of our business", () => {
    const others = [
      "HOSTNAME",
      "HOME",
      "PATH",
      "PORTS",
      "APP_IP",
      "REDIS_TLS_URL",
      "DATABASE_POOL_URL",
      "LOG_LEVEL_SQL",
    ];
    expect(problemsOf({ ...least, ...Object.fromEntries(others.map((name) => [name, "x"])) })).toEqual([]);
  });

  test("beside the setting itself it is some other program's, and empty it says nothing", () => {
    expect(problemsOf({ ...least, UPSTREAM_TOKENS: "x", OPERATOR_TOKENS: "" })).toEqual([]);
  });
});

test("nobody changes the configuration once it is read", () => {
  const config = parseConfig(least);
  expect(() => Object.assign(config, { port: 1 })).toThrow(TypeError);
  expect(() => config.repositories.push("octo/demo")).toThrow(TypeError);
});

test("settings of earlier versions are accepted, and a warning names what decides now", () => {
  expect(parseConfig(least).warnings).toEqual([]);
  expect(parseConfig({ ...least, STALE_AFTER: "never", RECOMPUTE_ETAGS: " " }).warnings).toEqual([
    expect.stringMatching(/^STALE_AFTER .* CATCH_UP_INTERVAL/),
  ]);
});

describe("a value that cannot be right says what would be", () => {
  test.each([
    ["PORT", "65536", "is not a port"],
    ["PORT", "-1", "is not a port"],
    ["PORT", "0x50", "is not a port"],
    ["PORT", "80.5", "is not a port"],
    ["DATABASE_CONNECTIONS", "0", "whole number above zero"],
    ["TRUSTED_PROXIES", "10.0.0.0/33", "neither an address"],
    ["TRUSTED_PROXIES", "proxy.example", "neither an address"],
    ["TRUSTED_PROXIES", "::1/8/8", "neither an address"],
    ["ANONYMOUS", "on", "not one of public, off"],
    ["CORS_ORIGINS", "app.example", "no origin"],
    ["CORS_ORIGINS", "https://app.example/path", "no origin"],
    ["CORS_ORIGINS", "https://app.example,*", "no origin"],
    ["CORS_ORIGINS", "file:///x", "no origin"],
    ["AUDIT_PERIOD", "0", "above zero"],
    ["RATE_LIMIT_USER", "-1", "0 is off"],
    ["RATE_LIMIT_USER", "1e3", "0 is off"],
    ["CATCH_UP_INTERVAL", "five minutes", "write 30s, 5m, 24h, 7d or plain seconds"],
    ["CATCH_UP_INTERVAL", "0", "not above zero"],
    ["CATCH_UP_INTERVAL", "-5m", "is not a duration"],
    ["DELIVERY_RETENTION", "0s", "not above zero"],
    ["SHUTDOWN_TIMEOUT", "40d", "longer than an hour"],
    ["WEBHOOK_BODIES_SIZE", "25MB", "no room for one of the largest events"],
    ["DATABASE_URL", "mysql://db.example/tain", "postgres:// or postgresql://"],
    ["DATABASE_URL", "postgres://u:100%zz@h/d", "not percent-encoded"],
    ["REDIS_URL", "redis.example:6379", "redis-sentinel://"],
    ["UPSTREAM_URL", "api.github.com", "http:// or https://"],
    ["UPSTREAM_URL", "https://github.com", "https://api.github.com"],
    ["UPSTREAM_URL", "https://user:word@ghe.example/api/v3", "user name or password"],
    ["UPSTREAM_URL", "https://ghe.example/api/v3?x=1", "query or fragment"],
    ["UPSTREAM_TOKEN", ",", "names nothing"],
    ["UPSTREAM_TOKEN", "one two", "separate tokens by commas"],
    ["WEBHOOK_SECRET", " , ", "names nothing"],
    ["REDIS_PREFIX", "tain", "hash tag"],
    ["REPOSITORIES", "octo/demo octo/other", "neither owner/name nor owner/*"],
    ["REPOSITORIES", "*/*", "neither owner/name nor owner/*"],
    ["REPOSITORIES", "octo/*,!octo/*", "neither owner/name nor owner/* nor !owner/name: !octo/*"],
    ["REPOSITORIES", "octo/*,octo/demo,!Octo/Demo", "names octo/demo and excepts it: leave one of the two"],
    ["LOG_LEVEL", "INFO", "not one of silent, fatal, error, warn, info, debug, trace"],
    ["OPERATOR_TOKEN", "fifteen-letters", "at least 16 characters"],
    ["WEBHOOK_SECRET", "fifteen-letters", "at least 16 characters"],
    ["ENCRYPTION_KEY", "fifteen-letters", "at least 16 characters"],
    ["ENCRYPTION_KEY", "a-key-of-its-own-1,first-webhook-secret", "holds a value of WEBHOOK_SECRET"],
    ["WEBHOOK_SECRET", "a-secret-that-is-long, fifteen-letters", "at least 16 characters"],
  ])("%s=%s", (name, value, message) => {
    expect(problemsOf({ ...least, [name]: value })).toEqual([expect.stringMatching(new RegExp(`^${name} `))]);
    expect(problemsOf({ ...least, [name]: value })[0]).toContain(message);
  });

  test("and never repeats what may be secret", () => {
    const env = {
      ...least,
      DATABASE_URL: "mysql://u:hidden-word@h/d",
      REDIS_URL: "http://:hidden-word@h",
      UPSTREAM_URL: "https://u:hidden-word@h",
      UPSTREAM_TOKEN: "hidden-word x",
      OPERATOR_TOKEN: "hidden",
    };
    expect(problemsOf(env)).toHaveLength(5);
    expect(problemsOf(env).join()).not.toContain("hidden");
  });
});

test("durations are read with a unit or as seconds", () => {
  expect(["250ms", "30s", "30", "1.5m", "24h", "7d"].map(duration)).toEqual([
    250, 30_000, 30_000, 90_000, 86_400_000, 604_800_000,
  ]);
});

test("lists lose blanks and doubles, and names their case", () => {
  const config = parseConfig({
    ...least,
    REPOSITORIES: " Octo/Demo, octo/demo ,hub/* ,",
    WEBHOOK_SECRET: "newer-webhook-secret, older-webhook-secret",
  });
  expect(config.repositories).toEqual(["octo/demo", "hub/*"]);
  expect(config.webhookSecrets).toEqual(["newer-webhook-secret", "older-webhook-secret"]);
});

test("addresses lose the slash at their end", () => {
  expect(
    parseConfig({ ...least, UPSTREAM_URL: "https://ghe.example/api/v3/", PUBLIC_URL: "https://tain.example/" }),
  ).toMatchObject({
    upstreamUrl: "https://ghe.example/api/v3",
    publicUrl: "https://tain.example",
  });
});

describe("a secret may stand in a file", () => {
  const file = async (text: string) => {
    const path = join(await mkdtemp(join(tmpdir(), "tain-secret-")), "secret");
    await writeFile(path, text);
    return path;
  };

  test.each(["DATABASE_URL", "REDIS_URL", "UPSTREAM_TOKEN", "WEBHOOK_SECRET", "OPERATOR_TOKEN"])(
    "%s_FILE, whose last line break is no part of it",
    async (name) => {
      const given: Record<string, string> = { ...least, OPERATOR_TOKEN: "token-of-the-operator" };
      const { [name]: text = "", ...others } = given;
      for (const end of ["", "\n", "\r\n"])
        expect(parseConfig({ ...others, [`${name}_FILE`]: await file(text + end) })).toEqual(parseConfig(given));
    },
  );

  test("both the file and the setting are too much, and neither is shown", async () => {
    const WEBHOOK_SECRET_FILE = await file("another-hidden-secret");
    expect(problemsOf({ ...least, WEBHOOK_SECRET_FILE })).toEqual([
      "WEBHOOK_SECRET_FILE is set beside WEBHOOK_SECRET: give only one of them",
    ]);
  });

  test("a file that is missing, empty or holds what cannot be right is named, once", async () => {
    const { WEBHOOK_SECRET: _, ...others } = least;
    const [empty, short] = [await file("\n"), await file("short\n")];
    for (const [path, problem] of [
      ["/no/such/file", "WEBHOOK_SECRET_FILE names a file that cannot be read: /no/such/file (ENOENT)"],
      [empty, `WEBHOOK_SECRET_FILE names a file that cannot be read: ${empty} (it is empty)`],
      [short, `WEBHOOK_SECRET_FILE names a file (${short}) that is too short to be a secret`],
    ] as const)
      expect(problemsOf({ ...others, WEBHOOK_SECRET_FILE: path })).toEqual([expect.stringContaining(problem)]);
    expect(problemsOf({ ...others, WEBHOOK_SECRET_FILES: "x" })).toContain(
      "WEBHOOK_SECRET_FILES is no setting: did you mean WEBHOOK_SECRET_FILE?",
    );
  });

  test("who reads the environment before finds the text, and nothing is read twice", async () => {
    const { DATABASE_URL, ...others } = least;
    const settled = withSecretFiles({ ...others, DATABASE_URL_FILE: await file(`${DATABASE_URL}\n`) });
    expect(settled).toEqual(least);
    expect(parseConfig(settled)).toEqual(parseConfig(least));
  });
});

describe("what is written about the settings", () => {
  test.each(Object.keys(configurationDocs()))(
    "%s says what the code does (else: node scripts/generate/configuration.ts)",
    async (path) => {
      expect(await readFile(new URL(`../${path}`, import.meta.url), "utf8")).toBe(configurationDocs()[path]);
    },
  );

  test("a copy of .env.example changes nothing but asks for what is required", () => {
    const names = Object.values(SETTINGS).flatMap((setting) => ("required" in setting ? [setting.name] : []));
    expect(parseEnv(configurationDocs()[".env.example"] ?? "")).toEqual(
      Object.fromEntries(names.map((name) => [name, ""])),
    );
  });

  test("with every default written out, the configuration is the same", () => {
    const text = (configurationDocs()[".env.example"] ?? "").replace(/^# ([A-Z_]+=)/gm, "$1");
    expect(parseConfig({ ...parseEnv(text), ...least })).toEqual(parseConfig(least));
  });
});

describe("the log", () => {
  const logged = (act: (log: ReturnType<typeof openLog>) => void, env = {}): string => {
    let output = "";
    act(openLog(parseConfig({ ...least, ...env }), { name: "test" }, { write: (line) => (output += line) }));
    return output;
  };

  test("a secret that looks like an address, or like a broken one, does not get into it either", () => {
    const written = (secret: string) => logged((log) => log.info(`${secret} was sent`), { OPERATOR_TOKEN: secret });
    expect(written("operator:token-with-a-colon")).toContain('"[redacted] was sent"');
    expect(written("operator://u:100%zz-ff@token")).toContain('"operator://u:[redacted]@token was sent"');
  });

  test("no secret gets into it, wherever it stands", () => {
    const quoted = 'a-quoted-se"cr\\et-word';
    const output = logged(
      (log) => {
        const cause = new Error(`connect to ${least.DATABASE_URL} failed`);
        log.error(
          {
            err: new Error(`upstream-token-two was refused, ${quoted}`, { cause }),
            token: "another",
            nested: { payload: "private text", secret: 1 },
          },
          "first-webhook-secret",
        );
        log.warn({ url: least.REDIS_URL, word: "redis-pass+word" }, "the token-of-the-operator");
      },
      { OPERATOR_TOKEN: "token-of-the-operator", WEBHOOK_SECRET: `first-webhook-secret,${quoted}` },
    );
    for (const secret of [
      "database-password",
      "redis-pass",
      "upstream-token",
      "webhook-secret",
      "token-of-the-operator",
      "another",
      "private text",
      "et-word",
    ]) {
      expect(output).not.toContain(secret);
    }
    expect(output).toContain("connect to postgres://tain:[redacted]@db.example");
    for (const line of output.trim().split("\n")) expect(() => JSON.parse(line)).not.toThrow();
  });

  test("one event is one line of JSON, with the process, and only from the configured level on", () => {
    const output = logged(
      (log) => {
        log.info("unheard");
        log.warn({ repository: "octo/demo" }, "heard");
      },
      { LOG_LEVEL: "warn" },
    );
    expect(JSON.parse(output)).toMatchObject({
      level: 40,
      process: "test",
      repository: "octo/demo",
      msg: "heard",
      time: expect.stringMatching(/Z$/),
    });
  });

  test("on a terminal a line is for people, the stack below it", () => {
    const output = readable(logged((log) => log.warn({ queue: "refresh", err: new Error("broken") }, "A job failed")));
    expect(output).toMatch(/^\d\d:\d\d:\d\d .*WARN.* test {2}A job failed.* queue=refresh/);
    expect(output).toMatch(/\n {2}Error: broken\n {6}at /);
  });
});

describe("a GitHub App", () => {
  const { UPSTREAM_TOKEN: _, ...tokenless } = least;
  const withKey = (APP_PRIVATE_KEY: string) => ({ ...tokenless, APP_ID: "4711", APP_PRIVATE_KEY });

  test.each([
    ["as it is", pem],
    ["with \\n for its line breaks", pem.replaceAll("\n", "\\n")],
    ["with line breaks of Windows", pem.replaceAll("\n", "\r\n")],
    ["as base64", Buffer.from(pem).toString("base64")],
    ["as PKCS #8", privateKey.export({ type: "pkcs8", format: "pem" }).toString()],
  ])("takes the place of a token; its key may stand there %s", (_how, text) => {
    const config = parseConfig(withKey(text));
    expect(config).toMatchObject({ appId: "4711", upstreamTokens: [] });
    expect(config.appPrivateKey).toBe(privateKey.export({ type: "pkcs8", format: "pem" }));
  });

  test("its key may stand in a file", async () => {
    const path = join(tmpdir(), `tain-key-${process.pid}.pem`);
    await writeFile(path, pem);
    const { appPrivateKey } = parseConfig({ ...tokenless, APP_ID: "Iv23liAbCdEf", APP_PRIVATE_KEY_FILE: path });
    expect(appPrivateKey).toContain("BEGIN PRIVATE KEY");
    await writeFile(path, "no key");
    expect(problemsOf({ ...tokenless, APP_ID: "1", APP_PRIVATE_KEY_FILE: path })).toEqual([
      expect.stringContaining(`APP_PRIVATE_KEY_FILE names a file (${path}) that is no private key in PEM`),
    ]);
    expect(problemsOf({ ...tokenless, APP_ID: "1", APP_PRIVATE_KEY_FILE: "/no/such/file" })).toEqual([
      expect.stringContaining("cannot be read: /no/such/file (ENOENT)"),
    ]);
  });

  test.each([
    ["nothing like a key", "cGxhaW4gdGV4dA==", "is no private key in PEM"],
    ["half a key", pem.slice(0, 200), "cannot be read as a private key"],
    ["the public key", publicKey.export({ type: "spki", format: "pem" }).toString(), "is a public key"],
    [
      "another kind of key",
      generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
      "GitHub's are RSA",
    ],
  ])("%s is refused, and the message shows none of it", (_what, text, reason) => {
    const [problem = "", ...others] = problemsOf(withKey(text));
    expect(others).toEqual([]);
    expect(problem).toMatch(/^APP_PRIVATE_KEY /);
    expect(problem).toContain(reason);
    expect(problem).not.toContain(text.slice(30, 60).trim() || "-----");
  });

  test("half of it is refused, and so is neither App nor token", () => {
    expect(problemsOf({ ...tokenless, APP_ID: "4711" })).toEqual([
      expect.stringContaining("APP_PRIVATE_KEY is not set"),
    ]);
    expect(problemsOf({ ...tokenless, APP_PRIVATE_KEY: pem })).toEqual([expect.stringContaining("APP_ID is not set")]);
    expect(problemsOf(tokenless)).toEqual([
      expect.stringContaining("UPSTREAM_TOKEN is not set: give a token, or a GitHub App"),
    ]);
    expect(problemsOf({ ...withKey(pem), APP_ID: "my app" })).toEqual([expect.stringContaining("neither an App's id")]);
  });
});
