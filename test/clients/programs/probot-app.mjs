// @ts-nocheck Probot is not installed here, so its types are not known.
// A bot that thanks for issues, as an installation of its App.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { resolve } = createRequire(`${process.argv[2]}/package.json`);
const { createNodeMiddleware, createProbot } = await import(pathToFileURL(resolve("probot")).href);
const say = (line) => console.log(JSON.stringify(line));

const app = (bot) => {
  bot.on("issues.opened", async (context) => {
    const { octokit, payload } = context;
    const { data: issues } = await octokit.rest.issues.listForRepo(
      context.repo({ state: "all", creator: payload.sender.login }),
    );
    const opened = issues.filter(({ id }) => id === payload.issue.id).length;
    await octokit.rest.issues.createComment(
      context.issue({ body: `Thanks for "${payload.issue.title}", one of ${opened}.` }),
    );
    say({ answered: payload.issue.number });
  });
  bot.onError((error) => say({ failed: String(error) }));
};
const { APP: appId, KEY: privateKey, SECRET: secret } = process.env;
process.on("unhandledRejection", (error) => say({ failed: String(error) }));
const probot = createProbot({ overrides: { appId, privateKey, secret, logLevel: "error" } });
const server = createServer(await createNodeMiddleware(app, { probot, webhooksPath: "/api/github/webhooks" }));
server.listen(0, "127.0.0.1", () => say({ port: server.address().port }));
