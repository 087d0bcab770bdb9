/**
 * The counters of a replay, by client: rules that count by one attribute find theirs together, with one look into one table, however many
 * they are; every other rule's counter is a client of its own, by its key.
 * Bounded in bytes of counters: ended ones are forgotten, and beyond the bound the idlest give way, which is counted.
 */
import { type Check, counterBytes, type Model, models, type Policy, type State } from "sluice/internal";
import { ownText } from "../own-text.js";

/** One counter, the check that the last request made of it, and what its caller notes about it. In one object: each more costs a miss of the cache. */
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
  /** By the rule's place; a rule that has not met the client has none. */
  readonly records: (KeyRecord<Note> | undefined)[];
  /** The place in the round of the sweep. */
  at: number;
}

/** What a caller keeps beside a counter. */
export interface Notes<Note> {
  readonly begin: (check: Check) => Note;
  /** Whether it may be forgotten once its counter has ended; the next request of the key begins another. */
  readonly isOver: (note: Note, nowMs: number) => boolean;
  /** Reads what the next request of the key will need, and returns any number made of it. */
  readonly touch: (note: Note) => number;
}

/** So many clients stay, ended or not: to make one again costs more than to find it. */
const FEW_CLIENTS = 32_768;
/** For each client that is added beyond these. Two: the sweep is faster than the growth. */
const LOOKS = 2;
/** Of how many the idlest gives way where memory is short. */
const EVICTION_LOOKS = 16;

export class ClientCounters<Note> {
  readonly #notes: Notes<Note>;
  readonly #maxBytes: number;
  /** By the slot of an attribute; those by key at -1. */
  readonly #tables = new Map<number, Map<string, Client<Note>>>();
  readonly #round: Client<Note>[] = [];
  #next = 0;
  #bytes = 0;
  /** Counters that gave way before their end. */
  evicted = 0;

  constructor(notes: Notes<Note>, maxBytes: number) {
    this.#notes = notes;
    this.#maxBytes = maxBytes;
  }

  /** The clients that are told apart by the attribute in a slot, or by a counter's whole key (-1). */
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

  /** In place of one that has ended. */
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

  /** A counter has grown or shrunk. */
  measure({ key, state }: KeyRecord<Note>): void {
    // It gave way to another counter of the same request.
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

  /** `asker`: the client that needs the room. */
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

/** The nearer to its end; but one with a counter that is used up behind all others: to forget it admits a client that was refused. */
function givesWayBefore<Note>(one: Client<Note>, other: Client<Note>): boolean {
  const isUsedUp = ({ records }: Client<Note>): boolean => records.some((record) => record?.state.isUsedUp === true);
  const endOf = ({ records }: Client<Note>): number =>
    records.reduce((latest, record) => Math.max(latest, record?.state.endsAtMs ?? 0), 0);
  return isUsedUp(one) === isUsedUp(other) ? endOf(one) < endOf(other) : isUsedUp(other);
}
