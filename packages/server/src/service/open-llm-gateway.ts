/** Builds the LLM gateway (`--usage`) from the settings: vendor, prices, tokenizer. */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { SluiceError } from "sluice";
import { type CountTokens, LlmGateway, type UsedByCall } from "../enforcement/proxy/usage/llm-gateway.js";
import { type Prices, readPrices } from "../enforcement/proxy/usage/prices.js";
import type { FieldsForm } from "../enforcement/proxy/usage/vendor-answers.js";
import { vendorOf } from "../enforcement/proxy/usage/vendors.js";
import type { Log } from "../log.js";
import type { Settings } from "../settings/settings.js";

export interface OpenLlmGateway {
  readonly gateway: LlmGateway;
  readonly prices: Prices | undefined;
  readonly fields: FieldsForm;
}

export async function openLlmGateway(
  settings: Settings,
  log: Log,
  onUsed: ((used: UsedByCall) => void) | undefined,
): Promise<OpenLlmGateway | undefined> {
  const { usage, "usage-prices": priceFile, "usage-tokenizer": tokenizer, "usage-headers": fields } = settings;
  if (usage === undefined) return undefined;
  const prices = priceFile === undefined ? undefined : readPrices(priceFile);
  const gateway = new LlmGateway({
    vendor: vendorOf(usage),
    prices,
    countTokens: tokenizer === undefined ? undefined : await loadTokenizer(tokenizer, log),
    bodyLimitBytes: settings["usage-body-limit"],
    asksForUsage: settings["usage-stream-options"],
    drainMs: settings["usage-drain"],
    hidesVendorFields: fields !== "off",
    onUsed,
  });
  return { gateway, prices, fields };
}

/** A failing tokenizer must not fail calls: fall back to counting bytes, and log the first failure. */
async function loadTokenizer(file: string, log: Log): Promise<CountTokens> {
  const { countTokens } = await importModule(file);
  if (typeof countTokens !== "function") {
    throw new SluiceError("invalid-setting", `usage-tokenizer: expected an export countTokens in ${file}`);
  }
  let hasFailed = false;
  return (call) => {
    try {
      return (countTokens as CountTokens)(call);
    } catch (error) {
      if (!hasFailed) log.warn("countTokens of --usage-tokenizer failed; bytes are counted", { error: String(error) });
      hasFailed = true;
      return undefined;
    }
  };
}

async function importModule(file: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(resolve(file)).href)) as Record<string, unknown>;
  } catch (error) {
    throw new SluiceError("invalid-setting", `usage-tokenizer: expected a module in ${file}, got ${String(error)}`);
  }
}
