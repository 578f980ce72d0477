import type { Worker } from "bullmq";
import { levelOf } from "../src/failure.ts";
import { type CommandReport, openCommand, reportCommand } from "../src/queues/commands.ts";
import type { CommandJob } from "../src/queues/jobs.ts";
import { QUEUE_NAMES } from "../src/queues/queues.ts";
import { openWorker, type WorkerContext } from "./worker.ts";

/** An audit may take minutes, and another operator's replay should not wait for it. */
const COMMANDS_AT_ONCE = 4;
/** The shortest time between two progress reports of a command. */
const TELL_MS = 300;

/**
 * Runs the commands of `tain` that operators ask for on the page. A command whose worker was killed is not begun again.
 */
export function openCommandsWorker(ctx: WorkerContext): Worker<CommandJob> {
  const options = { concurrency: COMMANDS_AT_ONCE, mostTakeovers: 0 };
  return openWorker<CommandJob>(ctx, QUEUE_NAMES.commands, options, async ({ data }, signal) => {
    const asked = openCommand(ctx, data);
    if (!asked) throw new Error("A command was asked for by none of our processes, or too long ago");
    const { id } = data;
    // Loaded only when needed: the commands are fifty modules, and most workers never run one.
    const { runAsked } = await import("../src/cli/asked.ts");
    const teller = new ProgressReporter(ctx, id);
    const report = await runAsked(ctx, asked, { signal, tell: (so) => teller.report(so) });
    await teller.end(report);
    ctx.log.info({ command: asked.name, code: report.code }, "An operator's command has ended");
  });
}

/** Reports a command's progress, once in `TELL_MS` at most, and then the newest state. */
class ProgressReporter {
  readonly #ctx: WorkerContext;
  readonly #id: string;
  #telling: Promise<void> = Promise.resolve();
  #newest: CommandReport | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(ctx: WorkerContext, id: string) {
    this.#ctx = ctx;
    this.#id = id;
  }

  report(newest: CommandReport): void {
    this.#newest = newest;
    this.#timer ??= setTimeout(() => this.#send(), TELL_MS);
  }

  /**
   * Never throws: an error would make the queue run the ended command once more. If the report is lost, the page says
   * that the outcome is unknown.
   */
  async end(report: CommandReport): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    await this.#telling;
    try {
      await reportCommand(this.#ctx, this.#id, report);
    } catch (error) {
      this.#ctx.log.warn({ err: error }, "The outcome of an operator's command could not be stored");
    }
  }

  #send(): void {
    this.#timer = null;
    const newest = this.#newest;
    if (!newest) return;
    this.#telling = this.#telling
      .then(() => reportCommand(this.#ctx, this.#id, { ...newest, document: null }))
      .catch((error: unknown) => {
        this.#ctx.log[levelOf(error, "debug")](
          { err: error },
          "The progress of an operator's command could not be stored",
        );
      });
  }
}
