/**
 * `--record`: the recording of an instance, from its settings. Out: the store that the limiter is to use, and what `/metrics` counts.
 */
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
  /** The attributes whose values are hashed, and with what: literal values in a draft are compared with hashes. */
  readonly hash: { readonly names: readonly string[]; readonly key: string };
  watch(limiter: Limiter): void;
  /** Writes what is queued, so that a reader finds it. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

interface RecordingOptions {
  readonly settings: Settings;
  readonly log: Log;
  readonly id: string;
  readonly store: Store;
  readonly clock: RememberedClock | undefined;
  /** Throws where the folder cannot be made or written to. */
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
