/**
 * A store on Redis with its model beside it: the model is asked the same at the time that each script reports, and must answer alike.
 * In and out: as a store.
 */
import assert from "node:assert";
import type { Check } from "../../packages/sluice/src/check.js";
import { KEY_PREFIX } from "../../packages/sluice/src/keys.js";
import { MemoryStore } from "../../packages/sluice/src/store/memory/memory-store.js";
import { redisConnection } from "../../packages/sluice/src/store/redis/connection.js";
import { RedisStore } from "../../packages/sluice/src/store/redis/redis-store.js";
import type { RefundRequest, StoreReply, StoreRequest } from "../../packages/sluice/src/store/store.js";
import { scriptTimeOf } from "./script-time.js";

export class ComparedStores {
  readonly #redis: RedisStore;
  readonly #endOf: (key: string) => Promise<number>;
  #nowMs = 0;
  /**
   * Whether a counter ended in the millisecond of a decision. Redis judges that by its clock at the start of a script, which then asks for the
   * time: nobody can tell whether that was the same millisecond, and the model may differ from here on.
   */
  isUndecided = false;
  /** Decisions that both made alike. */
  compared = 0;
  readonly #model = new MemoryStore({ clock: { now: () => this.#nowMs } });

  constructor(url: string) {
    const connection = redisConnection(url, { heartbeatMs: 60_000 });
    const send = connection.send.bind(connection);
    connection.send = async (command, args) => {
      const reply = await send(command, args);
      this.#nowMs = scriptTimeOf(args, reply) ?? this.#nowMs;
      return reply;
    };
    this.#endOf = async (key) => Number(await send("PEXPIRETIME", [KEY_PREFIX + key]));
    this.#redis = new RedisStore(connection, { deadlineMs: 60_000, rememberRefusals: false });
  }

  async ready(): Promise<boolean> {
    return this.#redis.ready();
  }

  async decide(request: StoreRequest): Promise<StoreReply> {
    const endsAtMs = await this.#endOf(request.checks[0]!.key);
    const lua = await this.#redis.decide(request);
    this.#nowMs = lua.nowMs;
    if (lua.nowMs === endsAtMs || lua.nowMs === endsAtMs + 1) this.isUndecided = true;
    if (this.isUndecided) return lua;
    const [ofLua, ofModel] = [lua, this.#model.decide(request)].map(({ verdicts }) => JSON.stringify(verdicts));
    assert.ok(ofLua === ofModel, `at ${this.#nowMs} Lua: ${ofLua}, model: ${ofModel}`);
    this.compared++;
    return lua;
  }

  async refund(request: RefundRequest): Promise<boolean> {
    const lua = await this.#redis.refund(request);
    assert.strictEqual(lua, this.#model.refund(request));
    return lua;
  }

  async giveBack(checks: readonly Check[]): Promise<boolean> {
    const lua = await this.#redis.giveBack(checks);
    if (!this.isUndecided) assert.strictEqual(lua, this.#model.giveBack(checks));
    return lua;
  }

  async reset(keys: readonly string[]): Promise<void> {
    await this.#redis.reset(keys);
    this.#model.reset(keys);
    // The two tell charges of the reset's own millisecond apart in different ways: test/redis/reset.test.ts is about that one.
    await new Promise((resolve) => setTimeout(resolve, 2));
  }

  async close(): Promise<void> {
    await this.#redis.close();
  }
}
