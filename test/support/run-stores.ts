/**
 * How a test process gets the stores of its run. Vitest's main process listens on a socket. The first question there
 * has the stores opened, and every question is answered once they are ready. All files of the run share them.
 */
import { once } from "node:events";
import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

/** `databaseUrl` is a superuser's. */
export interface RunStores {
  databaseUrl: string;
  redisUrl: string;
}

type Answer = { stores: RunStores } | { failure: string };

declare module "vitest" {
  interface ProvidedContext {
    /** The path of the socket. */
    storesSocket: string;
  }
}

/**
 * Answers each question with what `open` gives. `open` is called at the first question, and once.
 * `opened`: undefined when nobody has asked, or the stores could not be opened.
 */
export async function answerForStores(
  open: () => Promise<RunStores>,
): Promise<{ socket: string; opened(): Promise<RunStores | undefined>; close(): void }> {
  let opening: Promise<RunStores> | undefined;
  const answer = async (): Promise<Answer> => {
    try {
      opening ??= open();
      return { stores: await opening };
    } catch (error) {
      return { failure: error instanceof Error ? error.message : String(error) };
    }
  };
  // Nobody else can enter this directory: the answer holds passwords.
  const directory = await mkdtemp(join(tmpdir(), "tain-stores-"));
  const remove = () => rmSync(directory, { recursive: true, force: true });
  process.once("exit", remove); // A run that is stopped closes nothing.
  const socket = join(directory, "socket");
  const server = createServer((asking) => {
    asking.on("error", () => {}); // A test process may end while it waits.
    void answer().then((said) => asking.end(JSON.stringify(said)));
  });
  await once(server.listen(socket), "listening");
  return {
    socket,
    opened: async () => await opening?.catch(() => undefined),
    close: () => {
      server.close();
      process.off("exit", remove);
      remove();
    },
  };
}

/** @throws Error with the reason when the stores could not be opened */
export async function askForStores(socket: string): Promise<RunStores> {
  const answer: Answer = JSON.parse(await text(connect(socket)));
  if ("failure" in answer) throw new Error(answer.failure);
  return answer.stores;
}
