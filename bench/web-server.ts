import { parseConfig } from "../src/config.ts";
import { openContext } from "../src/context.ts";
import { runProcess } from "../src/operations/entry.ts";
import { openWeb } from "../src/web.ts";
import { announce } from "./processes.ts";

/** The web process, as `src/web.ts` starts it, for a benchmark that waits until it listens. */
await runProcess(async () => {
  const config = parseConfig(process.env);
  const resources = new AsyncDisposableStack();
  const ctx = await openContext(config, resources, { name: "bench-web" });
  ctx.metrics.observeProcess();
  const web = openWeb(ctx);
  const over = Promise.withResolvers<void>();
  announce(await web.listen({ host: config.host, port: config.port }), async () => {
    await web.close();
    await resources.disposeAsync();
    over.resolve();
  });
  await over.promise;
});
