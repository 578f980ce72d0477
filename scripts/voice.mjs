// What the launcher says. All of it goes to stderr: stdout belongs to the program that it starts.

/** A reason not to go on that whoever started us can act on. Shown as its sentence alone, without a stack. */
export class Refusal extends Error {
  name = "Refusal";
}

export function say(line) {
  process.stderr.write(`tain: ${line}\n`);
}
