/**
 * On a cluster, a request's records lie beside its counters, in their slots. A key that depends on the id alone lists those places, for a
 * refund by id. It also holds the fingerprint and the counters, because the same id with other attributes, or under other rules, would look
 * for its records elsewhere. A charge stands only if its place does: a refund that finds no place knows that there is nothing to give back.
 */
import { requestPlaceKey } from "../../../keys.js";
import { type AskedCounters, askedCounters, isRepeatOf } from "../../asked-counters.js";
import { otherRequest, REMEMBER_MS, type StoreRequest } from "../../store.js";
import type { RedisCalls } from "../calls.js";
import { malformed, numbersNamed, textOrNothing } from "../script-reply.js";
import type { Part } from "./split-by-tag.js";

interface Place {
  readonly fingerprint: string;
  /** The tags of the decision that it stands for come first. */
  readonly tags: readonly string[];
  readonly own: number;
  /** Absent if an older version wrote it. */
  readonly asked: AskedCounters | undefined;
}

type PlacedPart = Pick<Part, "tag">;

export class RequestPlaces {
  readonly #calls: RedisCalls;

  constructor(calls: RedisCalls) {
    this.#calls = calls;
  }

  /**
   * Writes the place of an id, unless the request only looks. Rejects if the id was sent for another request, or if the place cannot be
   * read. If an older or newer version of the rules was asked, its place stays: the tags of its decision are returned.
   */
  async take(request: StoreRequest, parts: readonly PlacedPart[]): Promise<readonly string[] | undefined> {
    const { id, charge, fingerprint } = request;
    if (id === undefined) return undefined;
    const asked = askedCounters(request);
    // A look charges nothing, so it need not know.
    const found = charge ? await this.#write(request, asked, parts.map(tagOf)) : await this.#read(id).catch(ignore);
    if (found === undefined || (found.fingerprint === fingerprint && found.asked?.digest === asked.digest))
      return undefined;
    if (found.fingerprint !== fingerprint) throw otherRequest();
    if (found.asked === undefined) return undefined;
    if (!isRepeatOf(asked, found.asked)) throw otherRequest();
    return found.tags.slice(0, found.own);
  }

  /** For when the decision under other rules is gone: writes the place of this one, which keeps the other's tags behind its own. */
  async replace(request: StoreRequest, parts: readonly PlacedPart[]): Promise<void> {
    const own = parts.map(tagOf);
    const others = (await this.tagsOf(request.id!)).filter((tag) => !own.includes(tag));
    await this.#write(request, askedCounters(request), own, others);
  }

  /** The hash tags of an id's records, as far as is known. */
  async tagsOf(id: string): Promise<readonly string[]> {
    return (await this.#read(id))?.tags ?? [];
  }

  /**
   * After a refund under these tags the id is free for any request. Not if it has other parts: one that is in flight, or was charged since,
   * must be found by its id.
   */
  async forget(id: string, refunded: readonly string[]): Promise<void> {
    try {
      const { tags = [], own } = (await this.#read(id)) ?? {};
      const isAll = tags.slice(0, own).every((tag) => refunded.includes(tag));
      if (isAll) await this.#calls.call("DEL", requestPlaceKey(id));
    } catch {
      // It expires by itself.
    }
  }

  /** Undefined if written; otherwise the place that is already there. */
  async #write(
    { id, fingerprint }: StoreRequest,
    { digest, rulesVersion, rules }: AskedCounters,
    own: readonly string[],
    others?: readonly string[],
  ): Promise<Place | undefined> {
    const spelled = `${digest} ${rulesVersion} ${own.length} ${JSON.stringify(rules)}`;
    const tags = JSON.stringify([...own, ...(others ?? [])]);
    const args = [fingerprint, tags, REMEMBER_MS, spelled, others === undefined ? 0 : 1];
    const reply = await this.#calls.run("place", [requestPlaceKey(id!)], args);
    numbersNamed(reply, "now_ms");
    const known = textOrNothing((reply as unknown[])[1]);
    return known === undefined ? undefined : readPlace(known);
  }

  async #read(id: string): Promise<Place | undefined> {
    const known = textOrNothing(await this.#calls.call("GET", requestPlaceKey(id)));
    return known === undefined ? undefined : readPlace(known);
  }
}

function readPlace(text: string): Place {
  const [fingerprint, spelledTags, counters] = text.split("\n");
  const tags = readTexts(spelledTags);
  if (counters === undefined) return { fingerprint: fingerprint!, tags, own: tags.length, asked: undefined };
  const [, digest, version, own, rules] = /^(\S+) (\S+) (\d+) (.*)$/.exec(counters) ?? [];
  if (digest === undefined) throw malformed("the counters of a request id", counters);
  const asked = { digest, rulesVersion: Number(version), rules: readTexts(rules) };
  return { fingerprint: fingerprint!, tags, own: Number(own), asked };
}

function readTexts(text: string | undefined): string[] {
  try {
    const texts: unknown = JSON.parse(text ?? "");
    if (Array.isArray(texts) && texts.every((one) => typeof one === "string")) return texts;
  } catch {
    // Handled like JSON of another shape.
  }
  throw malformed("the tags or the rules of a request id as JSON", text);
}

function tagOf({ tag }: PlacedPart): string {
  return tag;
}

/** A look need not know. */
function ignore(): undefined {}
