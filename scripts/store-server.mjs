// An embedded Postgres or Redis, for the rest of the launcher.

/**
 * `exited` resolves to a sentence if the server ends by itself. `says` is a sentence about the server, to be printed.
 * @typedef {{ url: string, says: string, pid: number, exited: Promise<string>, stop(): Promise<void> }} StoreServer
 */

/**
 * Resolves to the sentence if the server ends without having been asked to.
 * @param {Promise<unknown>} ended
 * @param {() => boolean} isStopping
 * @param {string} sentence
 * @returns {Promise<string>}
 */
export function unexpectedEnd(ended, isStopping, sentence) {
  return new Promise((resolve) => {
    ended.then(() => {
      if (!isStopping()) resolve(sentence);
    });
  });
}
