// The launcher's messages. They go to stderr, because stdout belongs to the program that it starts.

/** A reason not to go on, which a person can do something about. It is printed without a stack. */
export class Refusal extends Error {
  /** @override */
  name = "Refusal";
}

/** @param {string} line */
export function say(line) {
  process.stderr.write(`tain: ${line}\n`);
}
