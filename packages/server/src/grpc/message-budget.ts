/**
 * Memory that calls may hold before they are whole. A message may have a megabyte, a connection a thousand calls: without a budget, one
 * peer could make the service hold a gigabyte until the calls' deadline ends them.
 *
 * A message that is not whole with its first bytes reserves what is missing: its length stands in front of it. One that finds no room is paused:
 * it holds at most what flow control lets its client send (64 KiB). Nothing is refused, so no client gets through by a long header where
 * Envoy fails open; and as each reserves all it needs, those with a reservation always can end.
 */
export interface HalfSentBounds {
  readonly bytesPerConnection: number;
  readonly bytesInAll: number;
  /** Calls that are not whole. Envoy sends calls whole, so a connection of its own rarely has one, beside a stream of its quota. */
  readonly calls: number;
}

const BOUNDS: HalfSentBounds = { bytesPerConnection: 8 * 2 ** 20, bytesInAll: 64 * 2 ** 20, calls: 4_096 };

/** A connection, as the budget sees it. */
export interface Peer {
  halfSent: number;
  reserved: number;
}

interface Waiting {
  readonly peer: Peer;
  readonly bytes: number;
  readonly resume: () => void;
}

export class MessageBudget {
  readonly #bounds: HalfSentBounds;
  readonly #peers = new Set<Peer>();
  /** In the order of their arrival. */
  readonly #waiting = new Set<Waiting>();
  #halfSent = 0;
  #reserved = 0;

  constructor(bounds: HalfSentBounds = BOUNDS) {
    this.#bounds = bounds;
  }

  join(): Peer {
    const peer = { halfSent: 0, reserved: 0 };
    this.#peers.add(peer);
    return peer;
  }

  leave(peer: Peer): void {
    this.#peers.delete(peer);
  }

  /** A call begins. False: its connection has more than its share of those that are not whole, and this one must end. */
  begin(peer: Peer): boolean {
    this.#halfSent++;
    peer.halfSent++;
    const { calls } = this.#bounds;
    return this.#halfSent <= calls || peer.halfSent <= calls / this.#peers.size;
  }

  /** A call is whole, or gone. */
  end(peer: Peer): void {
    this.#halfSent--;
    peer.halfSent--;
  }

  /** Calls `pause` if there is no room, and `resume` once there is. Returns how to give the bytes back. */
  reserve({ peer, bytes, pause, resume }: Waiting & { readonly pause: () => void }): () => void {
    let isHeld = false;
    const waiting: Waiting = {
      peer,
      bytes,
      resume: () => {
        isHeld = true;
        resume();
      },
    };
    if (this.#fits(waiting)) {
      this.#hold(waiting);
      isHeld = true;
    } else {
      this.#waiting.add(waiting);
      pause();
    }
    return () => {
      this.#waiting.delete(waiting);
      if (!isHeld) return;
      isHeld = false;
      peer.reserved -= bytes;
      this.#reserved -= bytes;
      this.#admit();
    };
  }

  /** A message that is larger than a budget is let in alone; it is refused by its length. */
  #fits({ peer, bytes }: Waiting): boolean {
    const { bytesPerConnection, bytesInAll } = this.#bounds;
    const fitsPeer = peer.reserved === 0 || peer.reserved + bytes <= bytesPerConnection;
    return fitsPeer && (this.#reserved === 0 || this.#reserved + bytes <= bytesInAll);
  }

  #hold({ peer, bytes }: Waiting): void {
    peer.reserved += bytes;
    this.#reserved += bytes;
  }

  #admit(): void {
    for (const waiting of this.#waiting) {
      if (!this.#fits(waiting)) continue;
      this.#waiting.delete(waiting);
      this.#hold(waiting);
      waiting.resume();
    }
  }
}
