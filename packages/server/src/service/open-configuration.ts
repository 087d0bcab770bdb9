/** Step 2 of the start: opens the configuration, and loads its rules into the limiter on every change. */
import type { Rule } from "sluice";
import { countVersionsLocally, refuseGlobal } from "sluice/internal";
import { type Configuration, startConfiguration } from "../configuration/configuration.js";
import { RulesInForce } from "../enforcement/rules-in-force.js";
import type { Cleanup } from "../instance/cleanup.js";
import type { Instance } from "../instance/instance.js";
import { storeTls } from "../instance/store-tls.js";
import { isStarterRule, starterRules } from "../settings/starter-rules.js";
import { hasOwnLimits } from "./envoy-settings.js";

interface OpenConfiguration {
  readonly configuration: Configuration;
  /** Merges Envoy's limits with the configuration's rules. */
  readonly rules: RulesInForce;
}

export async function openConfiguration(
  { settings, log, limiter }: Pick<Instance, "settings" | "log" | "limiter">,
  cleanup: Cleanup,
): Promise<OpenConfiguration> {
  const rules = new RulesInForce(limiter);
  // New instances begin with version 1 of a new file, while those that they replace still have version 1 of the old one.
  if (settings.rules !== undefined) countVersionsLocally(limiter);
  const configuration = await startConfiguration({
    database: settings.database,
    redisUrl: settings.store === "memory" ? undefined : settings.store,
    redisTls: storeTls(settings),
    redisPrefix: settings["store-prefix"],
    rulesFile: settings.rules,
    dataFolder: settings["data-folder"],
    starterRules: hasOwnLimits(settings) ? [] : starterRules,
    accept: settings["global-store"] === undefined ? refuseGlobal : undefined,
    onRedisReady: () => void limiter.ready(),
    log,
  });
  cleanup.add(() => configuration.close());
  // A database may still hold starter rules from a first run without Envoy.
  const inForce = (own: readonly Rule[]): readonly Rule[] =>
    hasOwnLimits(settings) ? own.filter((rule) => !isStarterRule(rule)) : own;
  const apply = ({ rules: own, version }: Configuration["current"]): Promise<void> =>
    rules.setOwn(inForce(own), version);
  // Subscribe first: a change during the initial compilation must not be missed.
  configuration.onChange(apply);
  await apply(configuration.current);
  return { configuration, rules };
}
