/**
 * Opens the service's ports before the rest of the code is loaded, which is most of a start: connections wait meanwhile.
 * The first process opens them, and serves them itself or hands connections to its workers (`shared-ports.ts`).
 */
import type { ListenAddress } from "../http/listen.js";
import type { Port } from "../http/port.js";
import { WaitingListener } from "../http/waiting-listener.js";
import { putSuccessorNotice, readDrainNotice } from "../instance/handover.js";
import type { InheritedSockets } from "../settings/inherited-sockets.js";
import type { Settings } from "../settings/settings.js";
import { inheritPorts } from "./inherit-ports.js";

export type PortName = "grpc" | "http" | "proxy" | "metrics";

export interface Ports<P extends Port = Port> {
  readonly grpc: P;
  readonly http: P;
  /** With `--upstream`. */
  readonly proxy?: P;
  /** With `--metrics-address`. */
  readonly metrics?: P;
}

type PortSettings = Pick<Settings, "host" | "port" | "grpc-port" | "proxy-port" | "upstream" | "metrics-address">;

/** Called for a port in use. Resolves with true if it may be free by now and is worth another try. */
export type WhenTaken = (address: ListenAddress) => Promise<boolean>;

/** Opens every configured port, or none. Inherited sockets take the place of the ports that they match. */
export async function openPorts(
  settings: PortSettings,
  { sockets, forProcess }: InheritedSockets = { sockets: [] },
  whenTaken: WhenTaken = async () => false,
): Promise<Ports<WaitingListener>> {
  const inherited = await inheritPorts(sockets, addressesIn(settings));
  try {
    return await collectPorts(
      settings,
      async (name, address) => inherited.get(name) ?? (await openPort(address, whenTaken)),
    );
  } catch (error) {
    await closePorts(Object.fromEntries(inherited));
    if (forProcess !== undefined && error instanceof Error)
      error.message += `. LISTEN_PID has sockets for process ${forProcess}; this is ${process.pid}: let the supervisor start node itself`;
    throw error;
  }
}

/**
 * Undefined while a predecessor drains: it keeps serving until this process is ready, which then takes over the ports as its last step. Not
 * with a memory store, where two services at once would count separately, nor with workers: there the ports open first.
 */
export async function openPortsFirst(
  settings: Settings,
  inherited: InheritedSockets,
  whenTaken: WhenTaken,
): Promise<Ports<WaitingListener> | undefined> {
  const { "data-folder": folder, workers, store } = settings;
  const canBeLast = workers === 1 && store !== "memory" && inherited.sockets.length === 0;
  if (!canBeLast || readDrainNotice(folder) === undefined) return await openPorts(settings, inherited, whenTaken);
  putSuccessorNotice(folder, { isReady: false });
  return undefined;
}

async function openPort(address: ListenAddress, whenTaken: WhenTaken): Promise<WaitingListener> {
  for (;;) {
    try {
      return await new WaitingListener().listen(address);
    } catch (error) {
      const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
      if (code !== "EADDRINUSE" || !(await whenTaken(address))) throw error;
    }
  }
}

/** Opens one port after the other, gRPC first: an Envoy that fails closed answers 500 while it is down. */
export async function collectPorts<P extends Port>(
  settings: PortSettings,
  open: (name: PortName, address: ListenAddress) => Promise<P>,
): Promise<Ports<P>> {
  const opened: Partial<Record<PortName, P>> = {};
  try {
    for (const [name, address] of addressesIn(settings)) opened[name] = await open(name, address);
  } catch (error) {
    await closePorts(opened);
    throw error;
  }
  return opened as Ports<P>;
}

/** The configured ports; 0 (any) is left out. */
export function portNumbers(settings: PortSettings): number[] {
  return addressesIn(settings).flatMap(([, { port }]) => (port === 0 ? [] : [port]));
}

export async function closePorts(ports: Partial<Record<PortName, Port>>): Promise<void> {
  await Promise.all(Object.values(ports).map((port) => port.close()));
}

function addressesIn(settings: PortSettings): [PortName, ListenAddress][] {
  const { host, upstream, "metrics-address": metrics } = settings;
  const addresses: [PortName, ListenAddress][] = [
    ["grpc", { host, port: settings["grpc-port"], portSetting: "grpc-port" }],
    ["http", { host, port: settings.port, portSetting: "port" }],
  ];
  if (upstream !== undefined) {
    addresses.push(["proxy", { host, port: settings["proxy-port"], portSetting: "proxy-port" }]);
  }
  if (metrics !== undefined) addresses.push(["metrics", { ...addressOf(metrics), portSetting: "metrics-address" }]);
  return addresses;
}

/** Parses `[::1]:9090` and `host:9090`. */
function addressOf(text: string): { host: string; port: number } {
  const at = text.lastIndexOf(":");
  return { host: text.slice(0, at).replace(/^\[(.*)\]$/, "$1"), port: Number(text.slice(at + 1)) };
}
