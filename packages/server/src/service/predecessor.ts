/**
 * Restart in place without a supervisor: the successor starts while its predecessor drains, and takes over the ports as soon as they are
 * free. Until then the predecessor serves while the successor loads its code, which is most of a start.
 * In: a port in use. Out: whether it is worth another try. Loaded only in that case.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { putSuccessorNotice, readDrainNotice } from "../instance/handover.js";
import { createLog } from "../log.js";
import type { Settings } from "../settings/settings.js";
import type { WhenTaken } from "./open-ports.js";

/** Upper bound on the time between the predecessor's close and our open. */
const RETRY_MS = 2;

export function waitForPredecessor(settings: Settings): WhenTaken {
  let isWaiting = false;
  return async ({ host, port }) => {
    const folder = settings["data-folder"];
    const notice = readDrainNotice(folder);
    if (notice === undefined || !notice.ports.includes(port)) {
      // The predecessor may have ended after our last attempt: try once more.
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
