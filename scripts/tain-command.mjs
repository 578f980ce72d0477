#!/usr/bin/env node
// `tain`, as npm installs it with the package: the launcher's command of that name.
process.argv.splice(2, 0, "tain");
await import("./run.mjs");
