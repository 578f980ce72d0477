// Stands in for a part of the process tree: does what its argument says.
const [how] = process.argv.slice(2);
const alive = setInterval(() => {}, 60_000);
process.on("SIGTERM", () => {
  if (how === "deaf") return;
  console.log("stopping");
  clearInterval(alive);
});
process.on("disconnect", () => process.exit(9));
process.channel?.unref();
const more = { count: process.env.COUNTED, flags: `[${process.execArgv}]` }[how ?? ""];
// Last: its reader may ask for the stop at once.
console.log(more === undefined ? `started ${how}` : `started ${how} ${more}`);
if (how === "count") process.send?.({ COUNTED: String(Number(more) + 1) }, () => process.exit(3));
if (how === "crash") process.exit(3);
if (how === "refuse") process.exit(78);
