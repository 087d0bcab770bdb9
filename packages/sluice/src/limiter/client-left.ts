/**
 * Reports as an AbortSignal that the client of a waiting request has disconnected. The signal is made when the wait begins, because most
 * requests do not wait; call `forget` when the wait ends, because a connection outlives its requests.
 */
interface Closing {
  once(event: "close", listener: () => void): unknown;
  off(event: "close", listener: () => void): unknown;
  readonly destroyed?: boolean;
}

/** Node's requests; those of HTTP/2 have a stream of their own. Other runtimes give the request a signal. */
interface RawRequest {
  readonly socket?: Closing | null;
  readonly stream?: Closing;
  readonly req?: { readonly raw?: { readonly signal?: AbortSignal } };
}

export class ClientLeft {
  readonly #raw: RawRequest;
  /** Made by the first wait: an AbortController costs more than the whole decision about a request that is shed. */
  #controller: AbortController | undefined;
  #watched: Closing | undefined;
  readonly #leave = (): void => this.#controller?.abort();

  constructor(raw: object) {
    this.#raw = raw;
  }

  /** Whether the client was seen to disconnect. */
  get isSo(): boolean {
    return this.#controller?.signal.aborted === true;
  }

  readonly signal = (): AbortSignal => {
    if (this.#controller !== undefined) return this.#controller.signal;
    this.#controller = new AbortController();
    const watched = this.#raw.stream ?? this.#raw.socket ?? undefined;
    if (watched === undefined) {
      this.#raw.req?.raw?.signal?.addEventListener("abort", this.#leave, { once: true });
    } else if (watched.destroyed === true) {
      this.#leave();
    } else {
      this.#watched = watched;
      watched.once("close", this.#leave);
    }
    return this.#controller.signal;
  };

  forget(): void {
    this.#watched?.off("close", this.#leave);
  }
}
