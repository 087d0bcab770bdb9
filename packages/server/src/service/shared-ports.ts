/**
 * In the first process: the ports that the workers share. It accepts every connection and hands it to a worker, so that no connection
 * depends on a single worker: one that closes gets no more, the others do. While there is no worker, connections wait.
 * A listener closes with its last worker, and only at the end of the service; until then its queue is handed over.
 *
 * Why not node:cluster's own distribution: a worker that closes returns the connections in transit to it, and with the last worker the rest
 * is reset.
 */
import cluster, { type Worker } from "node:cluster";
import type { Socket } from "node:net";
import type { WaitingListener } from "../http/waiting-listener.js";
import type { PortName, Ports } from "./open-ports.js";
import { sendConnection, sendToWorker, type WorkerMessage } from "./worker-channel.js";

/** Connections in transit to workers that have not received them yet. */
const MOST_ON_THE_WAY = 4_096;

export class SharedPorts {
  readonly #ports: Ports<WaitingListener>;
  readonly #isEnding: () => boolean;
  /** Workers per port, the next in turn first. */
  readonly #serving = new Map<PortName, Worker[]>();
  readonly #onTheWay = new Map<Worker, number>();

  /** `isEnding`: no worker will follow the last one. */
  constructor(ports: Ports<WaitingListener>, { isEnding }: { isEnding: () => boolean }) {
    this.#ports = ports;
    this.#isEnding = isEnding;
    cluster.on("message", (worker, message: WorkerMessage) => {
      if (message.sluice === "port?") this.#answer(worker, message);
      if (message.sluice === "serve") this.#add(worker, message.name);
      if (message.sluice === "close") void this.#close(worker, message.name);
    });
    cluster.on("disconnect", (worker) => {
      this.#onTheWay.delete(worker);
      for (const name of this.#serving.keys()) this.#remove(worker, name);
    });
  }

  #answer(worker: Worker, asked: { name: PortName; host: string; port: number }): void {
    const { name, host, port } = asked;
    const opened = this.#ports[name];
    const isAsOpened = opened?.address?.host === host && opened.address.port === port;
    sendToWorker(worker, { sluice: "port", name, number: isAsOpened ? opened?.number : undefined });
  }

  #add(worker: Worker, name: PortName): void {
    this.#serving.set(name, [...(this.#serving.get(name) ?? []), worker]);
    this.#ports[name]?.handOver((socket) => this.#handOut(name, socket));
  }

  async #close(worker: Worker, name: PortName): Promise<void> {
    const others = this.#serving.get(name)?.filter((one) => one !== worker) ?? [];
    if (others.length === 0 && this.#isEnding()) await this.#ports[name]?.close();
    this.#remove(worker, name);
    // Sent after every connection that was handed to it (the channel is ordered).
    sendToWorker(worker, { sluice: "closed", name });
  }

  #remove(worker: Worker, name: PortName): void {
    const others = this.#serving.get(name)?.filter((one) => one !== worker) ?? [];
    this.#serving.set(name, others);
    if (others.length === 0) this.#ports[name]?.pause();
  }

  /** Picks the worker with the fewest connections in transit, so that a stalled one delays few; ties go round-robin. */
  #handOut(name: PortName, socket: Socket): void {
    const serving = this.#serving.get(name) ?? [];
    const worker = serving.toSorted((a, b) => this.#count(a) - this.#count(b))[0];
    if (worker === undefined || this.#count(worker) >= MOST_ON_THE_WAY) {
      socket.resetAndDestroy();
      return;
    }
    this.#serving.set(name, [...serving.filter((one) => one !== worker), worker]);
    this.#onTheWay.set(worker, this.#count(worker) + 1);
    const isSent = sendConnection(worker, { name, socket }, () => {
      // A worker that has ended has no count any more.
      if (this.#onTheWay.has(worker)) this.#onTheWay.set(worker, this.#count(worker) - 1);
    });
    if (isSent) return;
    // It has ended, and its "disconnect" event is still to come.
    this.#serving.set(
      name,
      this.#serving.get(name)!.filter((one) => one !== worker),
    );
    this.#handOut(name, socket);
  }

  #count(worker: Worker): number {
    return this.#onTheWay.get(worker) ?? 0;
  }
}
