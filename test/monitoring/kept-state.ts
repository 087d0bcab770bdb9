/** What instances keep and share, for tests: a history and a shared state, in memory or in a Redis. */
import { MemorySharedState } from "../../packages/server/src/instance/memory-shared-state.js";
import { redisClient } from "../../packages/server/src/instance/redis-client.js";
import { RedisSharedState } from "../../packages/server/src/instance/redis-shared-state.js";
import type { SharedState } from "../../packages/server/src/instance/shared-state.js";
import type { History } from "../../packages/server/src/monitoring/history/history.js";
import {
  MemoryHistory,
  type MemoryHistoryOptions,
} from "../../packages/server/src/monitoring/history/memory-history.js";
import { RedisHistory } from "../../packages/server/src/monitoring/history/redis-history.js";

export interface KeptState {
  readonly history: History;
  readonly shared: SharedState;
  close(): Promise<void>;
}

export async function openMemoryState(options: MemoryHistoryOptions): Promise<KeptState> {
  const history = await MemoryHistory.open(options);
  const shared = await MemorySharedState.open(options);
  return {
    history,
    shared,
    async close() {
      await history.close();
      await shared.close();
    },
  };
}

export function openRedisState(url: string): KeptState {
  const client = redisClient(url);
  return {
    history: new RedisHistory(client),
    shared: new RedisSharedState(client),
    close: async () => client.disconnect(),
  };
}

/** Nothing is queued while a client connects. */
export async function connected<T extends KeptState>(state: T): Promise<T> {
  for (let i = 0; i < 100; i++) {
    const answers = await state.shared.read("x").then(
      () => true,
      () => false,
    );
    if (answers) return state;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("Redis was not reached");
}
