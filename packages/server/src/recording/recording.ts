/** `--record`: sets up an instance's recording from its settings. Out: the store for the limiter, and the counts for `/metrics`. */
import { randomBytes } from "node:crypto";
import type { Limiter, Store } from "sluice";
import type { Log } from "../log.js";
import type { Settings } from "../settings/settings.js";
import { HashedValues } from "./hash-values.js";
import { Recorder } from "./recorder.js";
import { RecordingStore, type RememberedClock } from "./recording-store.js";
import { Segments } from "./segments.js";

export interface Recording {
  readonly store: Store;
  readonly folder: string;
  readonly counts: Readonly<Segments["counts"]>;
  /** The attributes whose values are hashed, and the key: literal values in a draft are compared with hashes. */
  readonly hash: { readonly names: readonly string[]; readonly key: string };
  watch(limiter: Limiter): void;
  /** Writes the queue, so that readers can see it. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

interface RecordingOptions {
  readonly settings: Settings;
  readonly log: Log;
  readonly id: string;
  readonly store: Store;
  readonly clock: RememberedClock | undefined;
  /** Throws if the folder cannot be created or written to. */
  readonly makeFolder: () => void;
}

export function openRecording({ settings, log, id, store, clock, makeFolder }: RecordingOptions): Recording {
  const folder = settings.record!;
  makeFolder();
  const segments = new Segments({
    folder,
    makeFolder,
    instance: id,
    maxBytes: settings["record-limit"],
    maxAgeMs: settings["record-age"],
    log,
  });
  const isMemory = settings.store === "memory";
  const hash = { names: settings["record-hash"] ?? [], key: settings["record-key"] ?? randomBytes(32).toString("hex") };
  const recorder = new Recorder({
    segments,
    hashed: new HashedValues(hash.names, hash.key),
    instance: id,
    store: isMemory ? "memory" : "redis",
    isFresh: isMemory,
  });
  return {
    store: new RecordingStore({ store, recorder, clock: isMemory ? clock : undefined }),
    folder,
    counts: segments.counts,
    hash,
    watch: (limiter) => recorder.watch(limiter),
    flush: () => segments.write(),
    close: () => segments.close(),
  };
}
