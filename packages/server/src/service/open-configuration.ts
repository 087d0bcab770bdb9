/** The second step of the start: the configuration, and its rules put into the limiter whenever they change. */
import type { Rule } from "sluice";
import { refuseGlobal } from "sluice/internal";
import { type Configuration, startConfiguration } from "../configuration/configuration.js";
import { RulesInForce } from "../enforcement/rules-in-force.js";
import type { Cleanup } from "../instance/cleanup.js";
import type { Instance } from "../instance/instance.js";
import { storeTls } from "../instance/store-tls.js";
import { isStarterRule, starterRules } from "../settings/starter-rules.js";
import { hasOwnLimits } from "./envoy-settings.js";

interface OpenConfiguration {
  readonly configuration: Configuration;
  /** Envoy's limits join the configuration's rules here. */
  readonly rules: RulesInForce;
}

export async function openConfiguration(
  { settings, log, limiter }: Pick<Instance, "settings" | "log" | "limiter">,
  cleanup: Cleanup,
): Promise<OpenConfiguration> {
  const rules = new RulesInForce(limiter);
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
  // A database may hold starter rules from a first run without Envoy.
  const inForce = (own: readonly Rule[]): readonly Rule[] =>
    hasOwnLimits(settings) ? own.filter((rule) => !isStarterRule(rule)) : own;
  const apply = ({ rules: own, version }: Configuration["current"]): Promise<void> =>
    rules.setOwn(inForce(own), version);
  // Listen first: a change that comes while the current rules are compiled must not be missed.
  configuration.onChange(apply);
  await apply(configuration.current);
  return { configuration, rules };
}
