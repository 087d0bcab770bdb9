/**
 * Runs a command of this repository, from its root, and tells how it ended.
 * In: the command. Out: exit code, output (where captured), time taken. Never throws for a command that fails.
 */
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/**
 * @typedef {object} Command
 * @property {string} command
 * @property {readonly string[]} [args]
 * @property {string} [cwd] default: the repository's root
 * @property {NodeJS.ProcessEnv} [env] added to this process's own
 * @property {boolean} [capture] keep the output instead of showing it
 *
 * @typedef {object} Outcome
 * @property {number} code 1 for a command that was ended by a signal or could not be started
 * @property {string} output
 * @property {number} tookMs
 */

/**
 * @param {Command} options
 * @returns {Promise<Outcome>}
 */
export function run({ command, args = [], cwd = root, env = {}, capture = false }) {
  const startedMs = performance.now();
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: capture ? ["ignore", "pipe", "pipe"] : ["ignore", "inherit", "inherit"],
    });
    let output = "";
    const keep = (/** @type {Buffer} */ chunk) => {
      output += chunk.toString();
    };
    child.stdout?.on("data", keep);
    child.stderr?.on("data", keep);
    /** @param {number} code */
    const end = (code) => resolve({ code, output, tookMs: performance.now() - startedMs });
    child.on("error", (error) => {
      output += `${command}: ${error.message}\n`;
      end(1);
    });
    child.on("close", (code, signal) => {
      if (signal !== null) output += `${command} was ended by ${signal}\n`;
      end(code ?? 1);
    });
  });
}

const require = createRequire(import.meta.url);

/**
 * Runs a tool that npm installed, by its file: `npx` would cost half a second each time.
 * @param {{ package: string, bin: string } & Omit<Command, "command">} options
 */
export function runTool({ package: name, bin, args = [], ...rest }) {
  const manifest = require.resolve(`${name}/package.json`);
  return run({ command: process.execPath, args: [join(dirname(manifest), bin), ...args], ...rest });
}

/** @param {number} ms */
export function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}
