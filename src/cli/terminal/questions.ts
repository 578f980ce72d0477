import { createInterface, type Interface } from "node:readline";
import { Writable } from "node:stream";
import { CommandError, type Given } from "./command.ts";
import { styled } from "./output.ts";

interface Question {
  /** The answer if nothing is typed. Absent: an answer is required. */
  otherwise?: string | undefined;
  /** The answer does not show on the terminal. */
  isSecret?: boolean;
}

/** Asks a person, or a program that writes a line for each question. A secret does not show while it is typed. */
export class Questions implements Disposable {
  readonly #interface: Interface;
  readonly #write: (text: string) => void;
  readonly #lines: string[] = [];
  #waiting: { resolve: (line: string) => void; reject: (reason: Error) => void } | null = null;
  #isMuted = false;
  #end: Error | null = null;

  /** @throws CommandError where there is nobody to ask */
  constructor({ streams }: Pick<Given, "streams">) {
    const { stdin, stdout } = streams ?? {};
    if (!stdin || !stdout)
      throw new CommandError("There is nobody to ask: run it in a terminal, or give it the answers on stdin");
    this.#write = (text) => void stdout.write(text);
    const shown = new Writable({
      write: (chunk, _encoding, done) => {
        if (!this.#isMuted) this.#write(String(chunk));
        done();
      },
    });
    const isTerminal = stdin.isTTY === true && stdout.isTTY === true;
    // Lines that are piped in arrive all at once: each is kept until its question comes.
    this.#interface = createInterface({ input: stdin, terminal: isTerminal, ...(isTerminal && { output: shown }) });
    this.#interface.on("line", (line) => {
      if (!this.#waiting) this.#lines.push(line);
      this.#waiting?.resolve(line);
      this.#waiting = null;
    });
    this.#interface.on("SIGINT", () => this.#stop("Interrupted"));
    this.#interface.on("close", () => {
      // The question stands at the end of a line, which what is said next would go on.
      if (this.#waiting) this.#write("\n");
      this.#stop("There are no more answers");
    });
  }

  /** Asks until there is an answer that `check` takes. An error of `check` is shown as the reason why not. */
  async ask<T>(text: string, check: (answer: string) => T | Promise<T>, question: Question = {}): Promise<T> {
    for (;;) {
      const answer = (await this.#line(text, question)).trim() || question.otherwise;
      try {
        if (answer === undefined) throw new AnswerError("An answer is needed here");
        return await check(answer);
      } catch (error) {
        if (!(error instanceof AnswerError)) throw error;
        this.refuse(error);
      }
    }
  }

  /** Shows why an answer will not do. */
  refuse({ message }: AnswerError): void {
    this.#write(`${styled("red", "  ✗")} ${message}\n`);
  }

  async confirm(text: string, otherwise: "y" | "n"): Promise<boolean> {
    const isYes = (answer: string) => {
      if (/^(y|yes|n|no)$/i.test(answer)) return /^y/i.test(answer);
      throw new AnswerError("Answer y or n");
    };
    return await this.ask(text, isYes, { otherwise });
  }

  async #line(text: string, { otherwise, isSecret = false }: Question): Promise<string> {
    const hint = otherwise ? ` ${styled("dim", `[${otherwise}]`)}` : "";
    this.#interface.setPrompt(`${styled("bold", text)}${hint} `);
    const given = this.#lines.shift();
    if (!this.#interface.terminal) this.#write(this.#interface.getPrompt());
    else this.#interface.prompt();
    if (given !== undefined) return this.#echoed(given);
    if (this.#end) throw this.#end;
    this.#isMuted = isSecret;
    try {
      return this.#echoed(await new Promise<string>((resolve, reject) => (this.#waiting = { resolve, reject })));
    } finally {
      this.#isMuted = false;
      if (isSecret && this.#interface.terminal) this.#write("\n");
    }
  }

  /** Ends the line of the question if the input is a pipe. On a terminal, the person's Enter has done so. */
  #echoed(line: string): string {
    if (!this.#interface.terminal) this.#write("\n");
    return line;
  }

  #stop(reason: string): void {
    this.#end ??= new CommandError(`${reason}: nothing was written`);
    this.#waiting?.reject(this.#end);
    this.#waiting = null;
  }

  [Symbol.dispose](): void {
    this.#interface.close();
  }
}

/** The answer will not do. The message says why. */
export class AnswerError extends Error {
  override name = "AnswerError";
}
