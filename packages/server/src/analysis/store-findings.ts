/**
 * Evaluates a Redis server's own information for counters: version, role, memory, clock. For `sluice doctor`. Pure.
 * In: parsed INFO, and the clock difference. Out: findings, with a remedy if there is something to do.
 */
import { factsOf, type Info } from "../monitoring/store-view/node-report.js";

export interface Finding {
  readonly check: string;
  readonly verdict: "ok" | "warning" | "failed";
  readonly text: string;
  readonly remedy?: string;
}

const OLDEST_MAJOR = 7;
const NEARLY_FULL = 0.8;
/** Only Redis's clock is used for windows; beyond this difference, times in responses look wrong to clients. */
const CLOCKS_APART_MS = 1_000;

export function storeFindings(info: Info, clock: { readonly aheadMs: number }): Finding[] {
  return [versionFinding(info), roleFinding(info), memoryFinding(info), clockFinding(clock.aheadMs)].filter(
    (finding) => finding !== undefined,
  );
}

function versionFinding(info: Info): Finding | undefined {
  const valkey = info.get("valkey_version");
  const version = valkey ?? info.get("redis_version");
  if (version === undefined) return undefined;
  const text = `${valkey === undefined ? "Redis" : "Valkey"} ${version}`;
  if (valkey !== undefined || Number.parseInt(version, 10) >= OLDEST_MAJOR) {
    return { check: "store version", verdict: "ok", text };
  }
  return { check: "store version", verdict: "warning", text, remedy: `run Redis ${OLDEST_MAJOR} or later, or Valkey` };
}

function roleFinding(info: Info): Finding | undefined {
  const { role, leaderAddress } = factsOf(info);
  if (role === undefined) return undefined;
  if (role === "leader") return { check: "store role", verdict: "ok", text: "takes writes" };
  return {
    check: "store role",
    verdict: "failed",
    text: `a replica of ${leaderAddress ?? "another server"}`,
    remedy: "give the leader's address, or use redis+sentinel:// or redis+cluster://",
  };
}

function memoryFinding(info: Info): Finding | undefined {
  const { usedBytes, maxBytes, maxMemoryPolicy = "noeviction" } = factsOf(info);
  if (usedBytes === undefined || maxBytes === undefined) return undefined;
  const check = "store memory";
  const used = mebibytes(usedBytes);
  if (maxBytes === 0) {
    const text = `${used} used, no maxmemory`;
    return { check, verdict: "warning", text, remedy: "set maxmemory: without it the machine's own memory is the end" };
  }
  const text = `${used} of ${mebibytes(maxBytes)} used, maxmemory-policy ${maxMemoryPolicy}`;
  if (usedBytes >= maxBytes) {
    const then = maxMemoryPolicy === "noeviction" ? "Redis refuses writes" : "Redis evicts counters";
    return { check, verdict: "failed", text, remedy: `raise maxmemory: ${then} now` };
  }
  if (maxMemoryPolicy !== "noeviction") {
    const remedy = "set maxmemory-policy noeviction: an evicted counter forgets what was used, and admits too much";
    return { check, verdict: "warning", text, remedy };
  }
  if (usedBytes >= NEARLY_FULL * maxBytes) {
    return { check, verdict: "warning", text, remedy: "raise maxmemory; `sluice plan` tells how much the rules need" };
  }
  return { check, verdict: "ok", text };
}

function clockFinding(aheadMs: number): Finding {
  const check = "clocks";
  const seconds = (Math.abs(aheadMs) / 1_000).toFixed(1);
  if (Math.abs(aheadMs) < CLOCKS_APART_MS)
    return { check, verdict: "ok", text: "the store's and this machine's agree" };
  return {
    check,
    verdict: "warning",
    text: `the store's clock is ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} this machine's`,
    remedy: "synchronise both (NTP): limits hold by the store's clock, but times in logs and calendars differ",
  };
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
