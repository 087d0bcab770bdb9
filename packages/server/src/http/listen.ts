/** Opens a listening socket, or says which setting to change. */
import type { AddressInfo, Server } from "node:net";
import { countAccepted } from "./accept-queue.js";

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** The setting that names the port. */
  readonly portSetting: string;
}

/** Resolves with the port. */
export function listen(server: Server, { host, port, portSetting }: ListenAddress): Promise<number> {
  countAccepted(server);
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => reject(listenError(error, { host, port, portSetting }));
    server.once("error", fail);
    server.listen({ host, port }, () => {
      server.off("error", fail);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

function listenError(error: NodeJS.ErrnoException, { host, port, portSetting }: ListenAddress): Error {
  const remedies: Readonly<Record<string, string>> = {
    EADDRINUSE: `--${portSetting}: port ${port} on ${host} is taken (EADDRINUSE): stop what listens there, or choose another port`,
    EACCES: `--${portSetting}: port ${port} needs a right that this process lacks (EACCES): choose one above 1023`,
    EADDRNOTAVAIL: `--host: expected an address of this machine, got ${host} (EADDRNOTAVAIL)`,
    ENOTFOUND: `--host: ${host} cannot be resolved (ENOTFOUND)`,
    EAI_AGAIN: `--host: ${host} cannot be resolved (EAI_AGAIN)`,
  };
  const told = remedies[error.code ?? ""];
  return told === undefined ? error : new Error(told, { cause: error });
}
