// Whether the process of this container lives: a web process answers at PORT, the others at METRICS_PORT. Exit code 0
// or 1.
const ports = [process.env.PORT, process.env.METRICS_PORT].filter(Boolean);
const answers = await Promise.allSettled(
  ports.map((port) => fetch(`http://127.0.0.1:${port}/-/live`, { signal: AbortSignal.timeout(4_000) })),
);
const isAlive = answers.some((answer) => answer.status === "fulfilled" && answer.value.ok);
if (!isAlive) console.error(`Nothing answers at /-/live on port ${ports.join(" or ")}`);
process.exit(isAlive ? 0 : 1);
