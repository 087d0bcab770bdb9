/**
 * On a cluster a request's records lie beside its counters, in their slots. A key of the id alone lists those places, for a refund by
 * the id; and it holds the fingerprint, because the same id with other attributes would look for its records elsewhere.
 * A charge stands only if its place does: a refund that finds no place knows that there is nothing to give back.
 */
import { requestPlaceKey } from "../../../keys.js";
import { REMEMBER_MS, type StoreRequest } from "../../store.js";
import type { RedisCalls } from "../calls.js";
import type { Part } from "./split-by-tag.js";

export class RequestPlaces {
  readonly #calls: RedisCalls;

  constructor(calls: RedisCalls) {
    this.#calls = calls;
  }

  /** Whether the id was sent for another request. If not, and if it is to be charged, its place is kept from now on, or this rejects. */
  async isOther({ id, charge, fingerprint }: StoreRequest, parts: readonly Pick<Part, "tag">[]): Promise<boolean> {
    if (id === undefined) return false;
    const tags = JSON.stringify(parts.map(({ tag }) => tag));
    if (!charge) {
      // A look charges nothing: it need not know.
      const place = await this.#read(id).catch(() => undefined);
      return place !== undefined && place.fingerprint !== fingerprint;
    }
    const [, isSame] = (await this.#calls.run(
      "place",
      [requestPlaceKey(id)],
      [fingerprint, tags, REMEMBER_MS],
    )) as unknown[];
    return Number(isSame) === 0;
  }

  /** The tags that an id's records lie under, as far as is known. */
  async tagsOf(id: string): Promise<string[]> {
    return (await this.#read(id))?.tags ?? [];
  }

  /**
   * After a refund under these tags the id is free for any request. Not where it has other parts: one that is under way, or that
   * was charged since, must be found by its id.
   */
  async forget(id: string, refunded: readonly string[]): Promise<void> {
    try {
      const tags = await this.tagsOf(id);
      if (tags.every((tag) => refunded.includes(tag))) await this.#calls.call("DEL", requestPlaceKey(id));
    } catch {
      // It ends by itself.
    }
  }

  async #read(id: string): Promise<{ fingerprint: string; tags: string[] } | undefined> {
    const place = await this.#calls.call("GET", requestPlaceKey(id));
    if (place === null || place === undefined) return undefined;
    const [fingerprint, tags] = String(place).split("\n");
    return { fingerprint: fingerprint!, tags: JSON.parse(tags!) as string[] };
  }
}
