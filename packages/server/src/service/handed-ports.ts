/** In a worker: the first process's ports (`shared-ports.ts`). Connections arrive over the IPC channel. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { SluiceError } from "sluice";
import type { ListenAddress } from "../http/listen.js";
import type { Port } from "../http/port.js";
import type { Settings } from "../settings/settings.js";
import { collectPorts, type PortName, type Ports } from "./open-ports.js";
import { type FirstMessage, sendToFirst } from "./worker-channel.js";

export async function handedPorts(settings: Settings): Promise<Ports> {
  const closeWithinMs = settings["drain-timeout"];
  return await collectPorts(settings, async (name, address) => {
    const { host, port } = address;
    const answered = nextMessage("port", name);
    sendToFirst({ sluice: "port?", name, host, port });
    const { number } = await answered;
    if (number === undefined) throw notOpen(address);
    return handedPort({ name, number, closeWithinMs });
  });
}

function handedPort({ name, number, closeWithinMs }: { name: PortName; number: number; closeWithinMs: number }): Port {
  return {
    number,
    serve(take) {
      process.on("message", (message: FirstMessage, socket?: Socket) => {
        // If the client disconnects in transit, the message arrives without a socket.
        if (message.sluice === "connection" && message.name === name && socket) take(socket);
      });
      sendToFirst({ sluice: "serve", name });
    },
    async close() {
      if (!process.connected) return;
      const closed = nextMessage("closed", name);
      sendToFirst({ sluice: "close", name });
      // A dead or silent first process must not delay the worker's shutdown.
      const late = new AbortController();
      const timeout = sleep(closeWithinMs, undefined, { signal: late.signal }).catch(() => undefined);
      await Promise.race([closed, once(process, "disconnect"), timeout]);
      late.abort();
    },
  };
}

function nextMessage<Kind extends FirstMessage["sluice"]>(
  kind: Kind,
  name: PortName,
): Promise<FirstMessage & { sluice: Kind }> {
  return new Promise((resolve) => {
    const look = (message: FirstMessage): void => {
      if (message.sluice !== kind || !("name" in message) || message.name !== name) return;
      process.off("message", look);
      resolve(message as FirstMessage & { sluice: Kind });
    };
    process.on("message", look);
  });
}

/** New workers reload the settings, but the first process keeps its ports. */
function notOpen({ host, port, portSetting }: ListenAddress): SluiceError {
  return new SluiceError(
    "invalid-setting",
    `${portSetting}: expected the address that is open, got ${host}:${port}. Another one needs a restart of the service, not of its workers`,
  );
}
