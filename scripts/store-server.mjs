// An embedded Postgres or Redis, as the rest of the launcher holds it.

/**
 * `exited` resolves to a sentence when the server ends by itself. `says` is a sentence for the person who started us.
 * @typedef {{ url: string, says: string, pid: number, exited: Promise<string>, stop(): Promise<void> }} StoreServer
 */

/**
 * Resolves to the sentence when the server ends and nothing has asked it to.
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
