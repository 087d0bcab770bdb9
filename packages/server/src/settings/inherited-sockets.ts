/**
 * Socket activation: listening sockets that a supervisor opened for this process and keeps open across restarts (systemd's protocol:
 * LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES). Pure: the environment is an argument.
 */
import { SluiceError } from "sluice";

export interface InheritedSocket {
  readonly fd: number;
  /** From `FileDescriptorName=`; systemd's default is the unit's name. */
  readonly name: string | undefined;
}

export interface InheritedSockets {
  readonly sockets: readonly InheritedSocket[];
  /** The process that the sockets are meant for, if it is another one. */
  readonly forProcess?: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The first descriptor after standard input, output and error. */
const FIRST_FD = 3;
/** There are fewer ports than this. */
const MOST_SOCKETS = 16;

export function inheritedSockets(env: Environment, pid: number): InheritedSockets {
  const { LISTEN_PID: forPid, LISTEN_FDS: count, LISTEN_FDNAMES: names } = env;
  if (forPid === undefined && count === undefined) return { sockets: [] };
  const owner = numberIn("LISTEN_PID", forPid, { least: 1, most: 2 ** 31 - 1 });
  // Child processes of the owner see the variables too, but the sockets are not for them.
  if (owner !== pid) return { sockets: [], forProcess: owner };
  const length = numberIn("LISTEN_FDS", count, { least: 0, most: MOST_SOCKETS });
  const named = names === undefined ? [] : names.split(":");
  if (names !== undefined && named.length !== length)
    throw mistake(`LISTEN_FDNAMES: expected ${length} names with colons between, as LISTEN_FDS has it, got "${names}"`);
  return { sockets: Array.from({ length }, (_, i) => ({ fd: FIRST_FD + i, name: named[i] })) };
}

function numberIn(
  variable: string,
  text: string | undefined,
  { least, most }: { readonly least: number; readonly most: number },
): number {
  const number = /^\d+$/.test(text ?? "") ? Number(text) : Number.NaN;
  if (number >= least && number <= most) return number;
  const got = text === undefined ? "nothing" : JSON.stringify(text);
  throw mistake(`${variable}: expected a whole number from ${least} to ${most} (socket activation), got ${got}`);
}

function mistake(message: string): SluiceError {
  return new SluiceError("invalid-setting", message);
}
