/**
 * Maps inherited sockets (socket activation) to ports: by the socket's name (grpc, http, proxy, metrics), else by its port number.
 * A socket that matches no port is a mistake: its clients would wait forever.
 */
import { SluiceError } from "sluice";
import type { ListenAddress } from "../http/listen.js";
import { isLoopback } from "../http/own-hosts.js";
import { WaitingListener } from "../http/waiting-listener.js";
import type { InheritedSocket } from "../settings/inherited-sockets.js";
import type { PortName } from "./open-ports.js";

type Addresses = readonly (readonly [PortName, ListenAddress])[];

/** Adopts all of the sockets, or none. */
export async function inheritPorts(
  sockets: readonly InheritedSocket[],
  addresses: Addresses,
): Promise<Map<PortName, WaitingListener>> {
  const taken = new Map<PortName, WaitingListener>();
  const opened: WaitingListener[] = [];
  try {
    for (const socket of sockets) {
      const listener = new WaitingListener();
      const at = await listener.inherit(socket.fd);
      opened.push(listener);
      const [name, address] = fit(socket, { host: at.address, port: at.port }, addresses);
      if (taken.has(name)) throw mistake(socket, `expected one socket for ${name}, got a second one`);
      taken.set(name, listener.standsFor(address));
    }
  } catch (error) {
    for (const listener of opened) await listener.close();
    throw error;
  }
  return taken;
}

function fit(
  socket: InheritedSocket,
  at: { readonly host: string; readonly port: number },
  addresses: Addresses,
): readonly [PortName, ListenAddress] {
  const found =
    addresses.find(([name]) => name === socket.name) ?? addresses.find(([, { port }]) => port > 0 && port === at.port);
  if (found === undefined) {
    const known = addresses.map(([name, { port, portSetting }]) => `${name} (--${portSetting} ${port})`).join(", ");
    throw mistake(socket, `expected the name or the port of one of ${known}, got port ${at.port}`);
  }
  // Warnings and access checks depend on the configured host: a service that believes it is on loopback trusts its neighbours.
  const [, { host }] = found;
  if (isLoopback(host) !== isLoopback(at.host.replace(/^::ffff:/, "")))
    throw mistake(socket, `expected a socket on ${host}, as the settings have it, got one on ${at.host}`);
  return found;
}

function mistake({ fd, name }: InheritedSocket, what: string): SluiceError {
  const spelled = name === undefined ? `descriptor ${fd}` : `descriptor ${fd} (${JSON.stringify(name)})`;
  return new SluiceError("invalid-setting", `LISTEN_FDS: ${spelled}: ${what}`);
}
