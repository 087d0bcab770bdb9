/**
 * One instance of the service: its identity, its store and limiter, the store's health, and the state that it shares with the others.
 * In: settings. Everything else of the service (configuration, monitoring, transports) stands on it.
 */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { createLimiter, type Limiter, memoryStore, type Store } from "sluice";
import { type RedisStoreOptions, redisStore } from "sluice/redis";
import type { Log } from "../log.js";
import { schemeOf } from "../printable.js";
import { openRecording, type Recording } from "../recording/recording.js";
import { RememberedClock } from "../recording/recording-store.js";
import type { Settings } from "../settings/settings.js";
import type { Cleanup } from "./cleanup.js";
import { holdFolder, makeFolder } from "./data-folder.js";
import { MemorySharedState } from "./memory-shared-state.js";
import { type RedisClient, redisClient } from "./redis-client.js";
import { redisKeys } from "./redis-keys.js";
import { RedisSharedState } from "./redis-shared-state.js";
import type { SharedState } from "./shared-state.js";
import { StoreHealth } from "./store-health.js";
import { storeTls } from "./store-tls.js";

export interface Instance {
  /** Unique in the fleet, and after a restart another. */
  readonly id: string;
  readonly settings: Settings;
  readonly log: Log;
  readonly store: Store;
  /** The kind of the store, for people to read. Never a URL: it may hold a password. */
  readonly storeKind: string;
  readonly limiter: Limiter;
  /** Present with --record. */
  readonly recording: Recording | undefined;
  readonly health: StoreHealth;
  /** For monitoring, which alone has something to share; absent where it is off. */
  readonly fleet: Fleet | undefined;
}

/** State that the instances of one store share. */
export interface Fleet {
  readonly shared: SharedState;
  /** Absent with the memory store: this instance is the fleet. */
  readonly redis: RedisClient | undefined;
  /** That of the global store, which the instances of all regions share; absent without one. */
  readonly home: SharedState | undefined;
}

export async function openInstance(
  { settings, log }: { settings: Settings; log: Log },
  cleanup: Cleanup,
): Promise<Instance> {
  const lock = openFolders(settings);
  cleanup.add(() => lock?.release());
  const id = `${hostname()}-${process.pid}-${randomBytes(6).toString("hex")}`;
  const clock = settings.record === undefined ? undefined : new RememberedClock();
  const store = openStore(settings, { log, clock });
  const recording =
    settings.record === undefined
      ? undefined
      : openRecording({ settings, log, id, store, clock, makeFolder: () => makeFolder(settings.record!, "record") });
  const limiter = createLimiter({
    rules: [],
    store: recording?.store ?? store,
    maxWaiting: settings["max-waiting"],
    ...regionOf(settings),
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
  if (settings.store === "memory") {
    const shared = await MemorySharedState.open({ dataFolder: settings["data-folder"], log });
    return { shared, redis: undefined, home: homeOf(settings) };
  }
  const redis = redisClient(settings.store, { tls: storeTls(settings) });
  return { shared: new RedisSharedState(redis, redisKeys(settings["store-prefix"])), redis, home: homeOf(settings) };
}

function homeOf(settings: Settings): SharedState | undefined {
  const { "global-store": url, "global-store-deadline": timeoutMs } = settings;
  if (url === undefined) return undefined;
  const client = redisClient(url, { tls: storeTls(settings), timeoutMs });
  return new RedisSharedState(client, redisKeys(settings["store-prefix"]));
}

function openStore(settings: Settings, { log, clock }: { log: Log; clock: RememberedClock | undefined }): Store {
  const { store, "store-deadline": deadlineMs, "memory-limit": maxBytes } = settings;
  if (store !== "memory") return redisStore(store, { deadlineMs, ...placeOf(settings) });
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

/** How both stores are reached, and which keys there are this fleet's. */
function placeOf(settings: Settings): Pick<RedisStoreOptions, "tls" | "prefix"> {
  return { tls: storeTls(settings), prefix: settings["store-prefix"] ?? "" };
}

function regionOf(settings: Settings): { region?: string; globalStore?: Store } {
  const { region, "global-store": url, "global-store-deadline": deadlineMs } = settings;
  if (region === undefined || url === undefined) return {};
  return { region, globalStore: redisStore(url, { deadlineMs, ...placeOf(settings) }) };
}

function openFolders(settings: Settings): { release(): void } | undefined {
  const { "data-folder": folder, database, store } = settings;
  makeFolder(folder, "data-folder");
  if (database?.startsWith("sqlite:") && database !== "sqlite::memory:") {
    makeFolder(dirname(database.slice("sqlite:".length)), "database");
  }
  return store === "memory" ? holdFolder(folder) : undefined;
}
