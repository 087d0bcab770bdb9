/**
 * How many instances share each limit, for the failure policy `local`. Either the options set the number, or the store counts instances by
 * heartbeat as soon as a rule in force needs it.
 */
import { DEFAULT_FAILURE_POLICY, type Rule } from "../rules/rule.js";
import type { InstanceCount } from "../store/instance-count.js";
import type { Store } from "../store/store.js";

export class InstanceShare {
  readonly #store: Store;
  readonly #configured: number | undefined;
  #counted: InstanceCount | undefined;
  #stopped = false;

  constructor(store: Store, configured: number | undefined) {
    this.#store = store;
    this.#configured = configured;
  }

  /** As far as is known; at least 1. */
  get instances(): number {
    return this.#configured ?? this.#counted?.known ?? 1;
  }

  /** Starts counting if one of these rules divides its limit among instances. */
  countFor(rules: readonly Rule[]): void {
    if (this.#stopped || this.#configured !== undefined || this.#counted !== undefined) return;
    if (rules.some(({ onStoreFailure = DEFAULT_FAILURE_POLICY }) => onStoreFailure === "local")) {
      this.#counted = this.#store.countInstances?.();
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#counted?.stop();
  }
}
