// As much of the Redis protocol as is needed to ask whether a server is ours, and to end it.
import { connect } from "node:net";
import { codeOf } from "./failure.mjs";

const ANSWER_TIMEOUT_MS = 2_000;

/**
 * The listener on a port: "nobody"; "stranger", a server that does not know the password; "silent", a server that does
 * not answer; or our own server, since no other knows its password.
 * @typedef {"nobody" | "stranger" | "silent" | { state: "loading" | "ready", pid: number }} Listener
 */

/**
 * Asks what listens on the port of 127.0.0.1.
 * @param {number} port
 * @param {string} password
 * @returns {Promise<Listener>}
 */
export async function askWhoListens(port, password) {
  const answer = await converse(port, [["AUTH", password], ["PING"], ["INFO", "server"]]);
  if (typeof answer === "string") return answer;
  const [authenticated, ping, info] = answer;
  if (authenticated !== "+OK") return "stranger";
  const pid = Number(/process_id:(\d+)/.exec(info ?? "")?.[1]);
  return { state: ping === "+PONG" ? "ready" : "loading", pid };
}

/**
 * Ends our server: it writes its append-only file out and closes the connection instead of answering.
 * @param {number} port
 * @param {string} password
 */
export async function shutDown(port, password) {
  await converse(port, [["AUTH", password], ["SHUTDOWN"]]);
}

/**
 * Resolves when a server ends that is not our child process: its end closes this connection.
 * @param {number} port
 * @param {string} password
 */
export async function connectionLost(port, password) {
  const socket = connect(port, "127.0.0.1");
  socket.write(encode(["AUTH", password]));
  socket.resume();
  await new Promise((resolve) => socket.on("error", resolve).on("close", resolve));
}

/**
 * One answer to each command, or why there is none.
 * @param {number} port
 * @param {string[][]} commands
 * @returns {Promise<string[] | "nobody" | "stranger" | "silent">}
 */
async function converse(port, commands) {
  return await new Promise((resolve) => {
    let heard = "";
    const socket = connect(port, "127.0.0.1");
    /** @param {string[] | "nobody" | "stranger" | "silent"} result */
    const finish = (result) => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => finish("silent"));
    socket.on("error", (error) => finish(codeOf(error) === "ECONNREFUSED" ? "nobody" : "silent"));
    socket.on("close", () => finish("silent"));
    socket.setEncoding("utf8").on("data", (chunk) => {
      heard += chunk;
      if (heard.startsWith("-")) finish("stranger");
      const answers = decode(heard, commands.length);
      if (answers) finish(answers);
      else if (heard.length > 100_000) finish("stranger");
    });
    socket.write(commands.map(encode).join(""));
  });
}

/** @param {string[]} words */
function encode(words) {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}

/**
 * The first `count` answers, or undefined if they have not all arrived. Simple answers keep their first character, such
 * as `+`.
 * @param {string} text
 * @param {number} count
 */
function decode(text, count) {
  /** @type {string[]} */
  const answers = [];
  let rest = text;
  while (answers.length < count) {
    const end = rest.indexOf("\r\n");
    if (end === -1) return undefined;
    const line = rest.slice(0, end);
    rest = rest.slice(end + 2);
    if (!line.startsWith("$")) {
      answers.push(line);
      continue;
    }
    const length = Number(line.slice(1)); // In bytes; INFO is ASCII.
    if (rest.length < length + 2) return undefined;
    answers.push(rest.slice(0, length));
    rest = rest.slice(length + 2);
  }
  return answers;
}
