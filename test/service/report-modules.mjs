/**
 * Preloaded into the service by a test: answers "modules" with the files that were loaded as code, and their bytes; "modules at listen"
 * with those that were loaded when the first port opened.
 */
import { statSync } from "node:fs";
import { Module, register } from "node:module";
import { Server } from "node:net";
import { fileURLToPath } from "node:url";
import { MessageChannel, receiveMessageOnPort } from "node:worker_threads";

/** @type {Map<string, number>} */
const loaded = new Map();
/** @param {string} file */
const note = (file) => loaded.set(file, statSync(file).size);

const { port1, port2 } = new MessageChannel();
port1.on("message", (url) => note(fileURLToPath(url)));
port1.unref();
const hook = `
  let port;
  export function initialize(given) { port = given; }
  export async function load(url, context, next) {
    if (url.startsWith("file:")) port.postMessage(url);
    return await next(url, context);
  }`;
register(`data:text/javascript,${encodeURIComponent(hook)}`, { data: port2, transferList: [port2] });

// Not seen by the hook: what CommonJS requires.
const { _extensions: extensions } = /** @type {any} */ (Module);
for (const extension of [".js", ".json", ".node"]) {
  const read = extensions[extension];
  extensions[extension] = (/** @type {unknown} */ module, /** @type {string} */ file) => {
    note(file);
    return read(module, file);
  };
}

/** @type {[string, number][] | undefined} */
let atListen;
const { listen } = Server.prototype;
Server.prototype.listen = /** @type {any} */ (
  /** @this {Server} @param {any[]} args */
  function (...args) {
    for (let next = receiveMessageOnPort(port1); next !== undefined; next = receiveMessageOnPort(port1))
      note(fileURLToPath(next.message));
    atListen ??= [...loaded];
    return listen.apply(this, /** @type {any} */ (args));
  }
);

process.on("message", (message) => {
  if (message === "modules") process.send?.([...loaded]);
  if (message === "modules at listen") process.send?.(atListen);
});
// A channel keeps a process alive; the service alone decides when it ends.
process.channel?.unref();
