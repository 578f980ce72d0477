import { once } from "node:events";
import { open, rename, rm } from "node:fs/promises";
import { codeOf, rootReasonOf } from "../../failure.ts";
import { CommandError, type Given } from "../terminal/command.ts";
import type { Batch } from "./reading.ts";

/** Makes text or bytes of the batches of one answer, in order. Each line of text ends with a line break. */
export interface RowWriter {
  take(batch: Batch): string | Uint8Array;
  /** What is left once all batches were taken. */
  end(): string | Uint8Array;
}

/** Takes an answer piece by piece, no faster than it is read or stored. */
export interface Sink {
  write(piece: string | Uint8Array): Promise<void>;
}

/** Whoever reads our output has left, as in `tain export issues | head`. */
class ReaderLeftError extends Error {
  override name = "ReaderLeftError";
}

/** The command's own output. Writing throws ReaderLeftError once nobody reads. */
export function standardSink({ streams = process, resources }: Pick<Given, "streams" | "resources">): Sink {
  const { stdout } = streams;
  if (stdout !== process.stdout) return { write: async (piece) => void stdout.write(piece) };
  let failure: Error | undefined;
  const fail = (error: Error) => {
    failure = error;
  };
  process.stdout.on("error", fail);
  resources.defer(() => void process.stdout.off("error", fail));
  return {
    write: async (piece) => {
      try {
        if (!failure && !process.stdout.write(piece)) await once(process.stdout, "drain");
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
    const filled = await fill({ write: (piece) => file.appendFile(piece).catch(cannot) });
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
      await sink.write(writer.take(batch));
      count += batch.rows.length;
    }
    await sink.write(writer.end());
    return count;
  } catch (error) {
    if (error instanceof ReaderLeftError) return null;
    throw error;
  }
}
