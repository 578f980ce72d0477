import { once } from "node:events";
import { open, rename, rm } from "node:fs/promises";
import { codeOf, rootReasonOf } from "../../failure.ts";
import { CommandError, type Given } from "../terminal/command.ts";
import type { RowWriter } from "./formats.ts";
import type { Batch } from "./reading.ts";

/** Takes an answer's text piece by piece, no faster than it is read or stored. */
export interface Sink {
  write(text: string): Promise<void>;
}

/** Whoever reads our output has left, as in `tain export issues | head`. */
class ReaderLeftError extends Error {
  override name = "ReaderLeftError";
}

/** The command's own output. Writing throws ReaderLeftError once nobody reads. */
export function standardSink({ streams = process, resources }: Pick<Given, "streams" | "resources">): Sink {
  const { stdout } = streams;
  if (stdout !== process.stdout) return { write: async (text) => void stdout.write(text) };
  let failure: Error | undefined;
  const fail = (error: Error) => {
    failure = error;
  };
  process.stdout.on("error", fail);
  resources.defer(() => void process.stdout.off("error", fail));
  return {
    write: async (text) => {
      try {
        if (!failure && !process.stdout.write(text)) await once(process.stdout, "drain");
      } catch (error) {
        if (codeOf(error) !== "EPIPE") throw error;
        throw new ReaderLeftError("Nobody reads the output", { cause: error });
      }
      if (failure && codeOf(failure) !== "EPIPE") throw failure;
      if (failure) throw new ReaderLeftError("Nobody reads the output", { cause: failure });
    },
  };
}

/**
 * Has `fill` write a file, which has its name only once it is whole.
 * @throws CommandError if it cannot be written
 */
export async function fillFile<T>(path: string, fill: (sink: Sink) => Promise<T>): Promise<T> {
  const part = `${path}.part`;
  const cannot = (error: unknown) => {
    throw new CommandError(`${path} cannot be written: ${rootReasonOf(error)}`, { cause: error });
  };
  const file = await open(part, "w").catch(cannot);
  try {
    const filled = await fill({ write: (text) => file.appendFile(text).catch(cannot) });
    await file.close();
    await rename(part, path).catch(cannot);
    return filled;
  } catch (error) {
    await file.close();
    await rm(part, { force: true });
    throw error;
  }
}

/** Writes all batches. Answers how many rows there were; null if the reader of the output left before the end. */
export async function writeRows(batches: AsyncIterable<Batch>, writer: RowWriter, sink: Sink): Promise<number | null> {
  let count = 0;
  try {
    for await (const batch of batches) {
      await sink.write(writer(batch));
      count += batch.rows.length;
    }
    return count;
  } catch (error) {
    if (error instanceof ReaderLeftError) return null;
    throw error;
  }
}
