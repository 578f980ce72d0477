// Runs processes, and recognises them again later. A pid alone proves nothing, because pids are reused. A pid together
// with its birth does: the moment at which the process started, in the system's own notation.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { codeOf } from "./failure.mjs";

/**
 * A process, identified by its pid and its birth. Without a birth, there was no such process.
 * @typedef {{ pid: number, birth?: string | undefined }} ProcessRecord
 */

/**
 * `input` is written to the command's stdin.
 * @typedef {import("node:child_process").SpawnOptionsWithoutStdio & { input?: string }} RunOptions
 */

/**
 * Runs a command to its end. Rejects only when it cannot be run at all.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<{ code: number | null, stdout: string, stderr: string }>}
 */
export async function run(command, args, { input = "", ...options } = {}) {
  const child = spawn(command, args, options);
  // A command may end without reading its input, which is no error.
  child.stdin.on("error", () => {}).end(input);
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk) => {
    stderr += chunk;
  });
  const [code] = await once(child, "close");
  return { code, stdout, stderr };
}

/**
 * When the process started, or undefined when there is no such process (any more).
 * @param {number} pid
 * @returns {Promise<string | undefined>}
 */
async function birthOf(pid) {
  if (process.platform === "linux") return (await statOf(pid))?.birth;
  const { code, stdout } = await run("ps", ["-o", "stat=,lstart=", "-p", String(pid)]);
  const [, state = "", birth] = /^(\S+)\s+(.+?)\s*$/.exec(stdout) ?? [];
  return code === 0 && !state.startsWith("Z") ? birth : undefined;
}

/**
 * The record of a process that runs now, for `isAlive` to know it again.
 * @param {number} pid
 * @returns {Promise<ProcessRecord>}
 */
export async function recordOf(pid) {
  return { pid, birth: await birthOf(pid) };
}

/** @param {ProcessRecord} record */
export async function isAlive(record) {
  if (!Number.isInteger(record.pid) || record.pid <= 1 || record.birth === undefined) return false;
  return (await birthOf(record.pid)) === record.birth;
}

/**
 * The arguments of a running process as one text, "" when there is no such process.
 * @param {number} pid
 */
export async function commandLineOf(pid) {
  if (process.platform === "linux") return (await readIfThere(`/proc/${pid}/cmdline`)).replaceAll("\0", " ");
  return (await run("ps", ["-o", "command=", "-p", String(pid)])).stdout;
}

/**
 * Resolves to true once the recorded process has ended, to false when it still runs after `timeoutMs`.
 * @param {ProcessRecord} record
 * @param {number} timeoutMs
 */
export async function hasEnded(record, timeoutMs, lookEveryMs = 20) {
  // A process that is not our child sends no event when it ends, so we look again and again.
  for (const deadline = Date.now() + timeoutMs; await isAlive(record); await delay(lookEveryMs)) {
    if (Date.now() >= deadline) return false;
  }
  return true;
}

/**
 * Sends a signal to a process, or with a negative pid to its group. False when there is none.
 * @param {number} pid
 * @param {NodeJS.Signals} name
 */
export function signal(pid, name) {
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    if (codeOf(error) === "ESRCH") return false;
    throw error;
  }
}

/**
 * Processes of a group whose leader may be gone already, if their environment contains `proof`, a NAME=value that we
 * gave them. Linux only: elsewhere the environment of others cannot be read, so nothing is proven.
 * @param {number} group
 * @param {string} proof
 */
export async function membersOfGroup(group, proof) {
  if (process.platform !== "linux") return [];
  /** @type {ProcessRecord[]} */
  const members = [];
  for (const entry of await readdir("/proc")) {
    if (!/^\d+$/.test(entry) || (await statOf(Number(entry)))?.group !== group) continue;
    const environment = (await readIfThere(`/proc/${entry}/environ`)).split("\0");
    if (environment.includes(proof)) members.push(await recordOf(Number(entry)));
  }
  return members;
}

/** @param {number} pid */
async function statOf(pid) {
  const stat = await readIfThere(`/proc/${pid}/stat`);
  // The second field is the command in brackets and may itself hold spaces and brackets.
  const [state, , group, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const isGone = stat === "" || state === "Z" || state === "X";
  return isGone ? undefined : { group: Number(group), birth: rest[16] };
}

/**
 * The text of a file in /proc. "" if the process has ended, or belongs to another user.
 * @param {string} path
 */
async function readIfThere(path) {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    // ESRCH: it ended between open and read. EACCES: it belongs to another user, so it is none of ours.
    if (["ENOENT", "ESRCH", "EACCES"].includes(codeOf(error) ?? "")) return "";
    throw error;
  }
}
