/**
 * Where each vendor's answers hold the tokens that a call has used, and the text that it produced. Data, by path (`JsonScanner`).
 * `--usage openai`, `--usage anthropic`, or a JSON pointer for others.
 */

/** The vendor's shapes: of errors, rate limit fields and answers. */
export interface Vendor {
  readonly name: "openai" | "anthropic" | "other";
  /** Paths of numbers. The largest that came counts: vendors report running totals. */
  readonly usage: ReadonlyMap<string, UsageField>;
  /** Numbers that are only a beginning: the answer goes on behind them. */
  readonly preliminary: ReadonlySet<string>;
  /** Where a call to this path of the vendor's has the most tokens of its answer: names that only others heed bound nothing. */
  boundsOf(target: string): readonly string[];
  /** Whether a string at this path is text that the model produced. */
  isText(path: string): boolean;
  /** The last steps of all these paths: most values of an answer end in another, and need no path. */
  readonly lastSteps: ReadonlySet<string>;
}

export type UsageField =
  | "prompt"
  | "input"
  | "completion"
  | "thoughts"
  | "total"
  | "cachedPrompt"
  | "cacheRead"
  | "cacheWrite";

/**
 * Names under which servers report the same figure. `cachedPrompt` is part of the prompt. Anthropic and Bedrock count cache reads and writes
 * beside their `input`; a gateway that reports those of Anthropic under OpenAI's names (LiteLLM) has them in its `prompt` already.
 * Gemini counts `thoughts` beside the completion.
 */
const fieldNames: Readonly<Record<UsageField, readonly string[]>> = {
  prompt: ["prompt_tokens", "promptTokenCount", "prompt_eval_count"],
  input: ["input_tokens", "inputTokens"],
  completion: ["completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens", "eval_count"],
  thoughts: ["thoughtsTokenCount"],
  total: ["total_tokens", "totalTokenCount", "totalTokens"],
  cachedPrompt: [
    "prompt_tokens_details/cached_tokens",
    "input_tokens_details/cached_tokens",
    "cachedContentTokenCount",
  ],
  cacheRead: ["cache_read_input_tokens", "cacheReadInputTokens"],
  cacheWrite: ["cache_creation_input_tokens", "cacheWriteInputTokens"],
};

/**
 * Of a choice, whole or in parts. The client chooses which of them it gets, by the fields of its call: one that is missing here is free for
 * a client that leaves before the usage comes.
 */
const choiceText = [
  "content",
  "reasoning_content",
  "reasoning",
  "refusal",
  "tool_calls/*/function/arguments",
  "tool_calls/*/custom/input",
  // The older form of tool calls, which servers still take.
  "function_call/arguments",
  "audio/transcript",
  // Mistral's models that reason answer in parts.
  "content/*/text",
  "content/*/thinking/*/text",
];

const openaiText = new Set([
  ...["delta", "message"].flatMap((part) => choiceText.map((step) => `choices/*/${part}/${step}`)),
  "choices/*/text",
  // The Responses API: its stream repeats whole texts at the end, which are not counted again.
  "delta",
  "output/*/content/*/text",
  "output/*/content/*/refusal",
  "output/*/summary/*/text",
  "output/*/arguments",
  "output/*/input",
  "output/*/code",
  // Runs of assistants.
  "delta/content/*/text/value",
  "delta/step_details/tool_calls/*/function/arguments",
  "delta/step_details/tool_calls/*/code_interpreter/input",
]);

const anthropicText = new Set([
  "delta/text",
  "delta/thinking",
  "delta/partial_json",
  "content/*/text",
  "content/*/thinking",
  // Text completions report no usage at all.
  "completion",
]);

/** Wherever they stand. */
const otherText = new Set([
  ...["content", "text", "delta", "response", "generated_text", "output"],
  ...["thinking", "reasoning", "reasoning_content"],
]);

/** Gemini takes either spelling of each name. */
const geminiConfigs = ["generationConfig", "generation_config"];
const geminiBounds = geminiConfigs.flatMap((config) => [`${config}/maxOutputTokens`, `${config}/max_output_tokens`]);

/** How many answers a call asks for, each of which has the bound. */
export const choiceCounts: readonly string[] = [
  "n",
  "best_of",
  ...geminiConfigs.flatMap((config) => [`${config}/candidateCount`, `${config}/candidate_count`]),
];

/** Every name that bounds an answer: OpenAI's three, Anthropic's, Gemini's, Bedrock's and Ollama's. */
export const allBounds: readonly string[] = [
  "max_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  ...geminiBounds,
  "inferenceConfig/maxTokens",
  "options/num_predict",
];
const chatBounds = ["max_tokens", "max_completion_tokens"];
const responseBounds = ["max_output_tokens"];
/** Which of them a server heeds, by the end of the path that is called (in small letters); at other paths any. */
const boundsAt: readonly (readonly [end: RegExp, bounds: readonly string[]])[] = [
  [/\/api\/(?:chat|generate)$/, ["options/num_predict"]],
  [/:(?:stream)?generatecontent$/, geminiBounds],
  [/\/converse(?:-stream)?$/, ["inferenceConfig/maxTokens"]],
];

/** llama.cpp heeds this name instead of OpenAI's where both stand; others pass over it. So it may lift a bound, and makes none. */
export const LIFTING_BOUND = "n_predict";

/** `stream_options` and the bounds of completions are fields of these two; others refuse what they do not know, or pass over it. */
export function isCompletion(target: string): boolean {
  return pathOf(target).endsWith("/completions");
}

/** Servers differ in whether they heed the case of a path, a slash at its end, and parameters (`;v=1`): a client must not slip through there. */
function pathOf(target: string): string {
  return target
    .split("?", 1)[0]!
    .replace(/;[^/]*/g, "")
    .replace(/\/+$/, "")
    .toLowerCase();
}

const openai = vendor({
  name: "openai",
  boundsOf(target) {
    const path = pathOf(target);
    if (path.endsWith("/chat/completions")) return chatBounds;
    // Completions of a text never had the other name, and servers pass over it there.
    if (isCompletion(target)) return ["max_tokens"];
    return path.endsWith("/responses") ? responseBounds : [...chatBounds, ...responseBounds];
  },
  usage: usageUnder(["usage", "response/usage"]),
  preliminary: new Set(),
  textPaths: openaiText,
});

const anthropic = vendor({
  name: "anthropic",
  boundsOf: () => ["max_tokens"],
  usage: usageUnder(["usage", "message/usage"]),
  // message_start; the final count comes with message_delta.
  preliminary: new Set(["message/usage/output_tokens"]),
  textPaths: anthropicText,
});

/** `usage`: a vendor's name, or a JSON pointer to its object of counts, or to one number: what the call has cost. */
export function vendorOf(usage: string): Vendor {
  if (usage === "openai") return openai;
  if (usage === "anthropic") return anthropic;
  const pointer = usage === "/" ? "" : usage.slice(1);
  const counts = usageUnder([pointer]);
  return {
    ...vendor({
      name: "other",
      boundsOf: (target) => boundsAt.find(([end]) => end.test(pathOf(target)))?.[1] ?? allBounds,
      usage: pointer === "" ? counts : new Map([...counts, [pointer, "completion"]]),
      preliminary: new Set(),
      textPaths: otherText,
    }),
    isText: (path) => otherText.has(lastStepOf(path)),
  };
}

function vendor({ textPaths, ...rest }: Omit<Vendor, "isText" | "lastSteps"> & { textPaths: Set<string> }): Vendor {
  return {
    ...rest,
    isText: (path) => textPaths.has(path),
    lastSteps: new Set([...rest.usage.keys(), ...textPaths].map(lastStepOf)),
  };
}

function lastStepOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function usageUnder(objects: readonly string[]): Map<string, UsageField> {
  const found = new Map<string, UsageField>();
  for (const object of objects) {
    for (const field of Object.keys(fieldNames) as UsageField[]) {
      for (const name of fieldNames[field]) found.set(object === "" ? name : `${object}/${name}`, field);
    }
  }
  return found;
}
