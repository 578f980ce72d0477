import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Command, type Figure, isMet, type Line, type Proof } from "./proof.ts";

/** A command that has ended. An interrupted command has not ended, and runs again. */
interface Ended {
  hasPassed: boolean;
  seconds: number;
  lines: Line[];
}

/**
 * How far a proof has come. It is written to a file after each command, so that an interrupted proof goes on from
 * there.
 */
interface State {
  version: string;
  date: string;
  /** How often failed commands were run again. An interruption is no attempt. */
  attempts: number;
  /** The commands' ends, in the order of the commands. */
  ended: (Ended | null)[];
}

/** The figure of how many of a proof's commands passed. */
export const PASSED = "runs that passed";

/** The outcome of a proof. */
export interface Result {
  name: string;
  version: string;
  date: string;
  seconds: number;
  attempts: number;
  figures: Figure[];
  isMet: boolean;
}

export interface Running {
  /** The folder of the states. */
  folder: string;
  /** The version of the sources that run. */
  version: string;
  /** Whether another version runs the same sources, so that its results hold for this version too. */
  isSame: (version: string) => boolean;
  /** True: forgets all earlier results. */
  again: boolean;
  now: () => Date;
  /** @throws when it is interrupted */
  run: (command: Command, proof: Proof) => Promise<Ended>;
  /** Called after each command. */
  tell?: (ended: number, of: number) => void;
}

/** Runs all commands that have not passed yet on this version, and answers the whole result. */
export async function runProof(proof: Proof, running: Running): Promise<Result> {
  const known = running.again ? null : await readState(proof, running);
  if (known && resultOf(proof, known).isMet) return resultOf(proof, known);
  const state = nextAttempt(proof, known) ?? newState(proof, running);
  for (const [at, command] of proof.commands.entries()) {
    if (state.ended[at]) continue;
    state.ended[at] = await running.run(command, proof);
    state.date = running.now().toISOString();
    await writeState(proof, running, state);
    running.tell?.(at + 1, proof.commands.length);
  }
  return resultOf(proof, state);
}

/** The known result on this version, whether or not the proof has ended; null: nothing is known. */
export async function knownResult(proof: Proof, running: Pick<Running, "folder" | "isSame">): Promise<Result | null> {
  const state = await readState(proof, running);
  return state && resultOf(proof, state);
}

function newState({ commands }: Proof, { version, now }: Running): State {
  return { version, date: now().toISOString(), attempts: 1, ended: commands.map(() => null) };
}

/**
 * An interrupted attempt continues. After a whole attempt, its failed commands run again. If every command passed but a
 * figure is beyond its bound, no single command is to blame, and all run again.
 */
function nextAttempt(proof: Proof, state: State | null): State | null {
  if (!state || state.ended.includes(null)) return state;
  const isAnyToBlame = state.ended.some((one) => !one?.hasPassed);
  return {
    ...state,
    attempts: state.attempts + 1,
    ended: proof.commands.map((_, at) => (isAnyToBlame && state.ended[at]?.hasPassed ? state.ended[at] : null)),
  };
}

function resultOf(proof: Proof, { version, date, attempts, ended }: State): Result {
  const done = ended.filter((one) => one !== null);
  const passed = done.filter(({ hasPassed }) => hasPassed).length;
  const figures = [
    { what: PASSED, measured: passed, bound: { atLeast: proof.commands.length } },
    ...proof.figures(done.flatMap(({ lines }) => lines)),
  ];
  const seconds = Math.round(done.reduce((sum, one) => sum + one.seconds, 0));
  return { name: proof.name, version, date, seconds, attempts, figures, isMet: figures.every(isMet) };
}

/** Null: no command has ended on this version, or the proof has other commands now. */
async function readState(proof: Proof, { folder, isSame }: Pick<Running, "folder" | "isSame">): Promise<State | null> {
  const text = await readFile(fileOf(folder, proof), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (text === null) return null;
  const { commands, ...state }: State & { commands: string } = JSON.parse(text);
  return commands === JSON.stringify(proof.commands) && isSame(state.version) ? state : null;
}

async function writeState(proof: Proof, { folder }: Running, state: State): Promise<void> {
  await mkdir(folder, { recursive: true });
  const text = JSON.stringify({ ...state, commands: JSON.stringify(proof.commands) });
  await writeFile(fileOf(folder, proof), text);
}

function fileOf(folder: string, { name }: Proof): string {
  return join(folder, `${name}.json`);
}
