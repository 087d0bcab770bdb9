/**
 * One instance of the service: its identity, its store and limiter, the store's health, and the state shared with other instances.
 * In: settings. The rest of the service (configuration, monitoring, transports) builds on it.
 */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { createLimiter, type Limiter, memoryStore, type Store } from "sluice";
import type { Log } from "../log.js";
import { schemeOf } from "../printable.js";
import { openRecording, type Recording } from "../recording/recording.js";
import { RememberedClock } from "../recording/recording-store.js";
import type { Settings } from "../settings/settings.js";
import type { Cleanup } from "./cleanup.js";
import { holdFolder, makeFolder } from "./data-folder.js";
import { MemorySharedState } from "./memory-shared-state.js";
import type { RedisClient } from "./redis-client.js";
import type { SharedState } from "./shared-state.js";
import { StoreHealth } from "./store-health.js";

export interface Instance {
  /** Unique in the fleet; changes with every restart. */
  readonly id: string;
  readonly settings: Settings;
  readonly log: Log;
  readonly store: Store;
  /** The store's kind, for people. Never its URL, which may contain a password. */
  readonly storeKind: string;
  readonly limiter: Limiter;
  /** Present with --record. */
  readonly recording: Recording | undefined;
  readonly health: StoreHealth;
  /** For monitoring, the only user of shared state; absent if it is off. */
  readonly fleet: Fleet | undefined;
}

/** State shared by the instances on the same store. */
export interface Fleet {
  readonly shared: SharedState;
  /** Absent with the memory store: this instance is the whole fleet. */
  readonly redis: RedisClient | undefined;
  /** Shared state in the global store, for the instances of all regions; absent without one. */
  readonly home: SharedState | undefined;
}

export async function openInstance(
  { settings, log }: { settings: Settings; log: Log },
  cleanup: Cleanup,
): Promise<Instance> {
  const lock = await openFolders(settings);
  cleanup.add(() => lock?.release());
  const id = `${hostname()}-${process.pid}-${randomBytes(6).toString("hex")}`;
  const clock = settings.record === undefined ? undefined : new RememberedClock();
  const store = await openStore(settings, { log, clock });
  const recording =
    settings.record === undefined
      ? undefined
      : openRecording({ settings, log, id, store, clock, makeFolder: () => makeFolder(settings.record!, "record") });
  const limiter = createLimiter({
    rules: [],
    store: recording?.store ?? store,
    maxWaiting: settings["max-waiting"],
    ...(await regionOf(settings)),
    ...(settings.instances !== undefined && { instances: settings.instances * settings.workers }),
  });
  recording?.watch(limiter);
  cleanup.add(() => recording?.close());
  cleanup.add(() => limiter.close());
  const health = new StoreHealth({ limiter, log });
  cleanup.add(() => health.close());
  const fleet = settings.monitoring === "off" ? undefined : await joinFleet(settings, log);
  cleanup.add(async () => {
    await fleet?.shared.close();
    await fleet?.home?.close();
    fleet?.redis?.disconnect();
  });
  return { id, settings, log, store, storeKind: schemeOf(settings.store), limiter, recording, health, fleet };
}

async function joinFleet(settings: Settings, log: Log): Promise<Fleet> {
  if (settings.store !== "memory") {
    const joined = (await loadRedis()).joinOnRedis(settings);
    return { ...joined, home: await homeOf(settings) };
  }
  const shared = await MemorySharedState.open({ dataFolder: settings["data-folder"], log });
  return { shared, redis: undefined, home: await homeOf(settings) };
}

async function homeOf(settings: Settings): Promise<SharedState | undefined> {
  return settings["global-store"] === undefined ? undefined : (await loadRedis()).homeOnRedis(settings);
}

/** Loaded only if a setting needs it: the client and its scripts are a fifth of the code read at startup. */
async function loadRedis(): Promise<typeof import("./on-redis.js")> {
  return await import("./on-redis.js");
}

async function openStore(
  settings: Settings,
  { log, clock }: { log: Log; clock: RememberedClock | undefined },
): Promise<Store> {
  const { store, "memory-limit": maxBytes } = settings;
  if (store !== "memory") return (await loadRedis()).storeOnRedis(settings);
  return memoryStore({
    maxBytes,
    ...(clock !== undefined && { clock }),
    onMemoryLimit: ({ evicted }) =>
      log.warn("the memory store is full and evicts live counters; raise --memory-limit or use Redis", {
        maxBytes,
        ...evicted,
      }),
  });
}

async function regionOf(settings: Settings): Promise<{ region?: string; globalStore?: Store }> {
  const { region, "global-store": url } = settings;
  if (region === undefined || url === undefined) return {};
  return { region, globalStore: (await loadRedis()).globalStoreOnRedis(settings, url) };
}

async function openFolders(settings: Settings): Promise<{ release(): void } | undefined> {
  const { "data-folder": folder, database, store } = settings;
  makeFolder(folder, "data-folder");
  if (database?.startsWith("sqlite:") && database !== "sqlite::memory:") {
    makeFolder(dirname(database.slice("sqlite:".length)), "database");
  }
  return store === "memory" ? await holdFolder(folder) : undefined;
}
