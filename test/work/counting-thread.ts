/** A thread that does what the first word of its task says. */
import { serveThread } from "../../src/work/thread.ts";

serveThread((task: string): string => {
  const [what = "", word = ""] = task.split(" ");
  const hoard: string[][] = [];
  switch (what) {
    case "block":
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(word));
      return "blocked";
    case "hoard":
      for (;;) hoard.push(Array.from({ length: 100_000 }, (_, at) => `${at}`));
    case "fail":
      throw new Error("It fails as it was asked to");
    default:
      return word;
  }
});
