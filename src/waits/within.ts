/**
 * The outcome of `work`, or what `late` returns or throws if the work takes longer than `ms`. The work itself goes on,
 * and its outcome is dropped.
 *
 * Each delivery and each command to Redis comes through here: `Promise.race` and `finally` would make more promises.
 */
export function within<Value, Late>(ms: number, work: Promise<Value>, late: () => Late): Promise<Value | Late> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      try {
        resolve(late());
      } catch (error) {
        reject(error);
      }
    }, ms);
    work.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
