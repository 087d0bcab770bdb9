/** Opens a listening socket, or uses one inherited from a supervisor. Errors name the setting to change. */
import type { AddressInfo, Server } from "node:net";
import { SluiceError } from "sluice";
import { countAccepted } from "./accept-queue.js";

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** The setting that configures the port. */
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

/** Resolves with the socket's address; connections that already wait in its queue are accepted at once. */
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
    EAI_AGAIN: `--host: ${JSON.stringify(host)} cannot be resolved now (EAI_AGAIN): the name server does not answer`,
  };
  if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND") {
    const expected = "expected an address of this machine, or a name of one";
    return new SluiceError("invalid-setting", `--host: ${expected}, got ${JSON.stringify(host)} (${error.code})`);
  }
  const told = remedies[error.code ?? ""];
  return told === undefined ? error : new Error(told, { cause: error });
}
