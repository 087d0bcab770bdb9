/** Assembles the Envoy integration: its configuration, limits carried by requests, and the decision function shared by gRPC and `/json`. */
import type { Limiter, Rule } from "sluice";
import { runInSlices, type Sliced, Stride } from "sluice/internal";
import type { Log } from "../../log.js";
import type { Metrics } from "../../monitoring/metrics.js";
import type { RulesInForce } from "../rules-in-force.js";
import type { FolderOptions } from "./config-folder.js";
import { ruleOf } from "./envoy-rules.js";
import type { LimitTree } from "./limit-tree.js";
import { inRegion, ownAttributes } from "./own-attributes.js";
import { QuotaService } from "./quota/quota-service.js";
import type { ReferenceMetrics } from "./reference-metrics.js";
import { RequestOverrides } from "./request-overrides.js";
import type { AnswerOptions } from "./respond.js";
import { createShouldRateLimit, type ShouldRateLimit } from "./should-rate-limit.js";
import { watchConfigFolder } from "./watch-folder.js";
import type { StartXds, XdsOptions } from "./xds/xds.js";

export interface Envoy {
  readonly shouldRateLimit: ShouldRateLimit;
  /** Absent with --envoy-rlqs false. */
  readonly quotas: QuotaService | undefined;
  close(): void;
}

export async function startEnvoy(options: {
  /** Absent without --envoy-config. */
  folder: FolderOptions | undefined;
  /** Absent without --envoy-xds. */
  xds: XdsOptions | undefined;
  answers: AnswerOptions;
  /** Whether the RLQS quota service is served. */
  quotas: boolean;
  /** Present with --envoy-metrics. */
  counts: ReferenceMetrics | undefined;
  limiter: Limiter;
  /** Default for the attribute `region`. */
  region: string | undefined;
  rules: RulesInForce;
  metrics: Metrics;
  log: Log;
}): Promise<Envoy> {
  const { folder, xds, limiter, region, rules, metrics, log } = options;
  const onReload = (outcome: "loaded" | "failed"): void => {
    metrics.envoyReloaded(outcome);
    options.counts?.note(outcome === "loaded" ? "config_load_success" : "config_load_error");
  };
  metrics.addCounters(options.counts?.metrics() ?? []);
  // Rules before tree: a limit found in the tree must have its rule in force already.
  let tree: LimitTree | undefined;
  const apply = async (next: LimitTree): Promise<void> => {
    await rules.setEnvoy(await runInSlices(makingRules(next)));
    tree = next;
  };
  const watched =
    folder === undefined
      ? undefined
      : watchConfigFolder({
          ...folder,
          log,
          onReload,
          onChange: apply,
        });
  if (watched !== undefined) await apply(watched.tree);
  const received = xds && (await openXds({ ...xds, log, apply, onReload, onConnection: metrics.envoyConnected }));
  const isExpected = xds !== undefined;
  return {
    quotas: options.quotas ? quotaService(options) : undefined,
    shouldRateLimit: createShouldRateLimit({
      limiter,
      region,
      tree: () => tree,
      lacksLimits: () => isExpected && tree === undefined,
      overrides: new RequestOverrides(),
      answers: options.answers,
      counts: options.counts,
      onGivenBack: (outcome) => metrics.envoyGaveBack(outcome),
    }),
    close() {
      watched?.close();
      received?.close();
    },
  };
}

type QuotaParts = Pick<Parameters<typeof startEnvoy>[0], "limiter" | "region" | "metrics" | "log">;

function quotaService({ limiter, region, metrics, log }: QuotaParts): QuotaService {
  const quotas = new QuotaService({
    limiter,
    log,
    onOutcome: (outcome) => metrics.envoyQuota(outcome),
    attributesOf: (domain, { bucket }) => {
      const entries = Object.entries(bucket).map(([key, value]) => ({ key, value }));
      return inRegion(ownAttributes(domain, [{ entries }]), region);
    },
  });
  metrics.readQuotas(() => quotas.counts);
  return quotas;
}

/** Loaded only if limits come from a control plane. */
async function openXds(options: Parameters<StartXds>[0]): ReturnType<StartXds> {
  const { startXds } = await import("./xds/xds.js");
  return await startXds(options);
}

function* makingRules({ limits }: LimitTree): Sliced<Rule[]> {
  const stride = new Stride();
  const made: Rule[] = [];
  for (const placed of limits) {
    const rule = ruleOf(placed);
    if (rule !== undefined) made.push(rule);
    if (stride.isOver()) yield;
  }
  return made;
}
