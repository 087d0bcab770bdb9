/**
 * A supervisor's part in socket activation: sockets that are bound here and never listened on, so that they outlive the processes that
 * do. `command` starts a process that has them at descriptor 3 and above, as systemd hands them over.
 */
interface TcpHandle {
  readonly fd: number;
  bind(host: string, port: number): number;
  getsockname(into: { port?: number }): number;
  close(): void;
}

/** Node's own net.Server listens as soon as it is bound, and would take connections that are meant for the process. */
const { TCP, constants } = (
  process as unknown as {
    binding(name: "tcp_wrap"): { TCP: new (type: number) => TcpHandle; constants: { SERVER: number } };
  }
).binding("tcp_wrap");

export class HeldSockets implements Disposable {
  readonly ports: readonly number[];
  readonly #handles: readonly TcpHandle[];

  /** On free ports; `host` as a listener would have it. */
  constructor(count: number, host = "127.0.0.1") {
    this.#handles = Array.from({ length: count }, () => new TCP(constants.SERVER));
    this.ports = this.#handles.map((handle) => {
      const failure = handle.bind(host, 0);
      if (failure !== 0) throw new Error(`bind failed with error ${-failure}`);
      const at: { port?: number } = {};
      handle.getsockname(at);
      return at.port!;
    });
  }

  /** For `stdio` of a spawned process, behind the first three. */
  get descriptors(): number[] {
    return this.#handles.map(({ fd }) => fd);
  }

  [Symbol.dispose](): void {
    for (const handle of this.#handles) handle.close();
  }
}

/** The process knows its own number only once it runs: a shell writes it down and becomes the program. */
export function activated(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
): { command: string; args: string[] } {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const script = 'export LISTEN_PID="$$"; exec env "$@"';
  return { command: "/bin/sh", args: ["-c", script, "sh", ...variables, ...command] };
}
