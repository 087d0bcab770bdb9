/** What the system says of a process (Linux, /proc): processor time, resident memory, children. */
import { readFileSync } from "node:fs";

const TICKS_A_SECOND = 100;

/** User and system time of a process, all its threads, in microseconds. @param {number} pid */
export function cpuUsOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return ((Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND) * 1e6;
}

/** @param {number} pid */
export function residentMbOf(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

/** The process and its children. @param {number} pid @returns {number[]} */
export function treeOf(pid) {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
  return [pid, ...children.map(Number)];
}
