import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, chown, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { administer } from "./database.ts";

const run = promisify(execFile);

/** A tablespace of the run's Postgres on a disk of a few megabytes, which a test can fill. */
export interface TinyDisk extends AsyncDisposable {
  tablespace: string;
  /** Leaves no byte free. */
  fill(): Promise<void>;
  free(): Promise<void>;
}

const SIZE = "4m";
/** More than there is. */
const FILLING = Buffer.alloc(8 * 1024 * 1024);

/** Null: this user may mount no disk. The tables in it have to be moved away before it is closed. */
export async function openTinyDisk(): Promise<TinyDisk | null> {
  if (process.getuid?.() !== 0) return null;
  const resources = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "tain-tiny-disk-"));
  resources.defer(() => rm(directory, { recursive: true, force: true }));
  try {
    await run("mount", ["-t", "tmpfs", "-o", `size=${SIZE}`, "tmpfs", directory]);
  } catch {
    await resources.disposeAsync();
    return null;
  }
  resources.defer(async () => void (await run("umount", [directory])));
  const tablespace = `tiny_${randomBytes(4).toString("hex")}`;
  await administer(async (admin) => {
    const { rows } = await admin.query<{ at: string }>("select current_setting('data_directory') as at");
    const { uid, gid } = await stat(rows[0]?.at ?? "");
    await chown(directory, uid, gid);
    await chmod(directory, 0o700);
    await admin.query(`create tablespace ${tablespace} location '${directory}'`);
  });
  resources.defer(() => administer(async (admin) => void (await admin.query(`drop tablespace ${tablespace}`))));
  const filler = join(directory, "filler");
  return {
    tablespace,
    // What does not fit is not written.
    fill: () => writeFile(filler, FILLING).catch(() => {}),
    free: () => rm(filler),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}
