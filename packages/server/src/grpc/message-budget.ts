/**
 * Memory budget for incomplete messages. A message may have a megabyte and a connection a thousand calls: without a budget, a single peer
 * could make the service hold a gigabyte until the calls' deadlines.
 *
 * A message whose first bytes arrive without the rest reserves the missing bytes, which its length prefix declares. If there is no room,
 * the call is paused: it holds at most its flow-control window (64 KiB). No message is refused for lack of room, so a client cannot use a
 * huge declared length to get past an Envoy that fails open. And since each reserves all it needs, messages with a reservation can always
 * complete (no deadlock).
 */
export interface HalfSentBounds {
  readonly bytesPerConnection: number;
  readonly bytesInAll: number;
  /** Incomplete calls. Envoy sends calls whole, so its connections rarely have one, apart from their RLQS stream. */
  readonly calls: number;
}

const BOUNDS: HalfSentBounds = { bytesPerConnection: 8 * 2 ** 20, bytesInAll: 64 * 2 ** 20, calls: 4_096 };

/** A connection's share of the budget. */
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
  /** In order of arrival. */
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

  /** A call begins. False if its connection has more than its fair share of incomplete calls, so this one must end. */
  begin(peer: Peer): boolean {
    this.#halfSent++;
    peer.halfSent++;
    const { calls } = this.#bounds;
    return this.#halfSent <= calls || peer.halfSent <= calls / this.#peers.size;
  }

  /** A call is complete, or gone. */
  end(peer: Peer): void {
    this.#halfSent--;
    peer.halfSent--;
  }

  /** Calls `pause` if there is no room, and `resume` once there is. Returns a function that releases the reservation. */
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

  /** A message larger than the whole budget is admitted alone; its length gets it refused elsewhere. */
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
