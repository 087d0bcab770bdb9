/**
 * A restart in place without a supervisor: the successor starts while its predecessor drains, and takes the ports as soon as they are
 * free. Until then the predecessor serves, and the successor reads its own code, which is most of a start.
 * In: a port that is taken. Out: whether it is worth another try. Loaded only then.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { putSuccessorNotice, readDrainNotice } from "../instance/handover.js";
import { createLog } from "../log.js";
import type { Settings } from "../settings/settings.js";
import type { WhenTaken } from "./open-ports.js";

/** A port that the predecessor has closed opens again after this at most. */
const RETRY_MS = 2;

export function waitForPredecessor(settings: Settings): WhenTaken {
  let isWaiting = false;
  return async ({ host, port }) => {
    const folder = settings["data-folder"];
    const notice = readDrainNotice(folder);
    if (notice === undefined || !notice.ports.includes(port)) {
      // It may have ended after the port was tried: once more.
      const mayBeFree = isWaiting;
      isWaiting = false;
      return mayBeFree;
    }
    if (!isWaiting) {
      isWaiting = true;
      const log = createLog(settings["log-level"]);
      log.info("a predecessor drains: waiting for its ports", { pid: notice.pid, host, port });
      await (settings.workers > 1 ? import("./workers.js") : import("./service.js"));
      putSuccessorNotice(folder, { isReady: true });
    }
    await sleep(RETRY_MS);
    return true;
  };
}
