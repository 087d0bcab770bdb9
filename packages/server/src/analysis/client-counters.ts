/**
 * The counters of a replay, grouped by client: all rules that count by the same attribute find their counters with a single table look-up;
 * any other rule's counter is a client of its own, by its key.
 * Bounded in bytes: ended counters are dropped, and beyond the bound those nearest to their end are evicted, which is counted.
 */
import { type Check, counterBytes, type Model, models, type Policy, type State } from "sluice/internal";
import { ownText } from "../own-text.js";

/** A counter, its last check, and the caller's note on it. A single object, because each additional one costs a cache miss. */
export interface KeyRecord<Note> {
  plan: Check["plan"];
  readonly key: string;
  cost: number;
  live: number;
  readonly model: Model<Policy, State>;
  readonly note: Note;
  state: State;
}

export interface Client<Note> {
  readonly table: Map<string, Client<Note>>;
  readonly name: string;
  /** By rule index; sparse, as some rules have not matched this client. */
  readonly records: (KeyRecord<Note> | undefined)[];
  /** Its index in the sweep's round-robin list. */
  at: number;
}

/** Data that a caller keeps with each counter. */
export interface Notes<Note> {
  readonly begin: (check: Check) => Note;
  /** Whether it may be dropped once its counter has ended; the key's next request starts a new one. */
  readonly isOver: (note: Note, nowMs: number) => boolean;
  /** Prefetches what the key's next request will need; returns any number derived from it, so that the read is not optimised away. */
  readonly touch: (note: Note) => number;
}

/** This many clients are kept even if they have ended: recreating one costs more than finding it. */
const FEW_CLIENTS = 32_768;
/** Clients swept per client added beyond that. Two, so that the sweep outpaces the growth. */
const LOOKS = 2;
/** Candidates considered for each eviction. */
const EVICTION_LOOKS = 16;

export class ClientCounters<Note> {
  readonly #notes: Notes<Note>;
  readonly #maxBytes: number;
  /** By attribute slot; clients found by key at -1. */
  readonly #tables = new Map<number, Map<string, Client<Note>>>();
  readonly #round: Client<Note>[] = [];
  #next = 0;
  #bytes = 0;
  /** Counters evicted before their end. */
  evicted = 0;

  constructor(notes: Notes<Note>, maxBytes: number) {
    this.#notes = notes;
    this.#maxBytes = maxBytes;
  }

  /** The clients identified by a slot's attribute, or by a counter's whole key (-1). */
  tableOf(slot: number): Map<string, Client<Note>> {
    const table = this.#tables.get(slot) ?? new Map<string, Client<Note>>();
    this.#tables.set(slot, table);
    return table;
  }

  clientOf(table: Map<string, Client<Note>>, name: string, nowMs: number): Client<Note> {
    return table.get(name) ?? this.#newClient(table, name, nowMs);
  }

  #newClient(table: Map<string, Client<Note>>, name: string, nowMs: number): Client<Note> {
    if (this.#round.length >= FEW_CLIENTS) this.#sweep(nowMs);
    const kept = ownText(name);
    const client: Client<Note> = { table, name: kept, records: [], at: this.#round.length };
    this.#round.push(client);
    table.set(kept, client);
    return client;
  }

  add(client: Client<Note>, place: number, check: Check, nowMs: number): KeyRecord<Note> {
    while (this.#bytes > this.#maxBytes && this.#round.length > 1) this.#evict(client, nowMs);
    const model = models[check.plan.policy.stored];
    const { plan, key, cost, live } = check;
    const record = { plan, key, cost, live, model, note: this.#notes.begin(check), state: this.#begun(model, key) };
    while (client.records.length <= place) client.records.push(undefined);
    client.records[place] = record;
    return record;
  }

  /** Replaces an ended counter. */
  renew(record: KeyRecord<Note>): void {
    this.#bytes -= record.state.bytes;
    record.state = this.#begun(record.model, record.key);
  }

  #begun(model: Model<Policy, State>, key: string): State {
    const state = model.fresh();
    state.bytes = counterBytes(key, state);
    this.#bytes += state.bytes;
    return state;
  }

  /** Updates the memory accounting after a counter's size may have changed. */
  measure({ key, state }: KeyRecord<Note>): void {
    // It was evicted for another counter of the same request.
    if (state.bytes === 0) return;
    const bytes = counterBytes(key, state);
    this.#bytes += bytes - state.bytes;
    state.bytes = bytes;
  }

  #sweep(nowMs: number): void {
    for (let i = 0; i < LOOKS; i++) {
      const client = this.#nextClient();
      if (this.#liveOf(client, nowMs) === 0) this.#drop(client);
    }
  }

  #liveOf({ records }: Client<Note>, nowMs: number): number {
    let live = 0;
    for (const record of records) {
      if (record !== undefined && !(record.state.endsAtMs < nowMs && this.#notes.isOver(record.note, nowMs))) live++;
    }
    return live;
  }

  /** `asker`: the client that needs room, which is spared. */
  #evict(asker: Client<Note>, nowMs: number): void {
    let chosen: Client<Note> | undefined;
    for (let i = 0; i < EVICTION_LOOKS; i++) {
      const client = this.#nextClient();
      if (client !== asker && (chosen === undefined || givesWayBefore(client, chosen))) chosen = client;
    }
    if (chosen === undefined) return;
    this.evicted += this.#liveOf(chosen, nowMs);
    this.#drop(chosen);
  }

  #drop(client: Client<Note>): void {
    client.table.delete(client.name);
    for (const record of client.records) {
      if (record === undefined) continue;
      this.#bytes -= record.state.bytes;
      record.state.bytes = 0;
    }
    const last = this.#round.pop()!;
    if (last === client) return;
    this.#round[client.at] = last;
    last.at = client.at;
  }

  /** Round-robin. */
  #nextClient(): Client<Note> {
    if (this.#next >= this.#round.length) this.#next = 0;
    return this.#round[this.#next++]!;
  }
}

/** Nearest to its end first; but clients with a used-up counter last, because dropping that would admit a client that was refused. */
function givesWayBefore<Note>(one: Client<Note>, other: Client<Note>): boolean {
  const isUsedUp = ({ records }: Client<Note>): boolean => records.some((record) => record?.state.isUsedUp === true);
  const endOf = ({ records }: Client<Note>): number =>
    records.reduce((latest, record) => Math.max(latest, record?.state.endsAtMs ?? 0), 0);
  return isUsedUp(one) === isUsedUp(other) ? endOf(one) < endOf(other) : isUsedUp(other);
}
