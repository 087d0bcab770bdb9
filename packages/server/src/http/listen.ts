/** Opens a listening socket, or takes one that a supervisor has opened. A failure names the setting to change. */
import type { AddressInfo, Server } from "node:net";
import { SluiceError } from "sluice";
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

/** Resolves with the address of the socket; connections that wait at it come at once. */
export function listenOnInherited(server: Server, fd: number): Promise<AddressInfo> {
  countAccepted(server);
  return new Promise((resolve, reject) => {
    const fail = (got: string): void => {
      const expected = "expected a TCP socket that listens, or can";
      reject(new SluiceError("invalid-setting", `LISTEN_FDS: descriptor ${fd}: ${expected}, got ${got}`));
    };
    const failed = (error: NodeJS.ErrnoException): void => fail(error.code ?? error.message);
    server.once("error", failed);
    server.listen({ fd }, () => {
      server.off("error", failed);
      const address = server.address();
      if (address !== null && typeof address === "object") resolve(address);
      else fail(`a Unix socket (${address})`);
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
