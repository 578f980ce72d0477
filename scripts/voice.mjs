// What the launcher says. All of it goes to stderr: stdout belongs to the program that it starts.

/** A reason not to go on, for the person who started us to act on. Shown as its sentence alone, without a stack. */
export class Refusal extends Error {
  /** @override */
  name = "Refusal";
}

/** @param {string} line */
export function say(line) {
  process.stderr.write(`tain: ${line}\n`);
}
